//! A drain policy: it acts before and after a drain, or blocks the drain until a condition holds.

use std::time::Duration;

use scupper_sdk::{Call, Description, Hooks, Outcome, Phase, Policy, description};

struct NewPolicy;

scupper_sdk::export!(NewPolicy with hooks);

impl Policy for NewPolicy {
    fn describe() -> Description {
        description!("Holds a drain up while a pod has the annotation example.com/busy")
    }
}

impl Hooks for NewPolicy {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain]
    }

    /// A step does not wait. It looks, says what it waits for, and is called again.
    fn step(call: &Call) -> Outcome {
        let busy: Vec<_> = call
            .pods
            .iter()
            .filter(|pod| pod.annotation("example.com/busy").is_some())
            .collect();
        if busy.is_empty() {
            return Outcome::Done;
        }
        let pending = Outcome::pending(format!("{} pods are busy", busy.len()))
            .again_after(Duration::from_secs(10));
        let pending = busy.iter().fold(pending, |pending, pod| {
            pending.waiting_for(pod.full_name(), "busy", None)
        });
        pending.into()
    }
}

#[cfg(test)]
mod tests {
    use scupper_sdk::{
        Outcome, Phase, Subject,
        testing::{Host, pod},
    };

    use super::NewPolicy;

    #[test]
    fn a_busy_pod_blocks_the_drain() {
        let host = Host::new();
        host.pods([pod("shop/cart").with_annotation("example.com/busy", "")]);
        let outcome = host.step::<NewPolicy>(Phase::BeforeDrain, Subject::Node);
        assert!(matches!(outcome, Outcome::Pending(_)), "{outcome:?}");
        host.pods([pod("shop/cart")]);
        assert_eq!(
            host.step::<NewPolicy>(Phase::BeforeDrain, Subject::Node),
            Outcome::Done
        );
    }
}
