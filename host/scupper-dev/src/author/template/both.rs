//! A drain policy: it sorts the pods of a node, and holds a drain up until something has happened.

use std::time::Duration;

use scupper_sdk::{
    Call, Description, Draft, Drain, Hooks, Node, Outcome, Phase, Planner, Policy, description,
};

struct NewPolicy;

scupper_sdk::export!(NewPolicy with planner, hooks);

impl Policy for NewPolicy {
    fn describe() -> Description {
        description!(
            "Waits for pods with the annotation example.com/busy, and lets those marked as last leave last"
        )
    }
}

impl Planner for NewPolicy {
    /// The draft is what `kubectl drain` would do, or what the policy before this one made of it.
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.leaving() {
            if pod.label("example.com/last").is_some() {
                draft.move_to_wave(pod, "last");
            }
        }
        Ok(())
    }
}

impl Hooks for NewPolicy {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain]
    }

    /// A step does not wait. It looks, says what it waits for, and is called again.
    fn step(call: &Call) -> Outcome {
        let busy = call
            .pods
            .iter()
            .find(|pod| pod.annotation("example.com/busy").is_some());
        match busy {
            None => Outcome::Done,
            Some(pod) => Outcome::pending("a pod is busy")
                .again_after(Duration::from_secs(10))
                .waiting_for(pod.full_name(), "busy", None)
                .into(),
        }
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
    fn marked_pods_are_evicted_last() {
        let host = Host::new();
        host.pods([
            pod("shop/db").with_label("example.com/last", ""),
            pod("shop/cart"),
        ]);
        let plan = host.plan::<NewPolicy>().unwrap();
        assert_eq!(plan.waves(), ["all: shop/cart", "last: shop/db"]);
    }

    #[test]
    fn a_busy_pod_blocks_the_drain() {
        let host = Host::new();
        host.pods([pod("shop/cart").with_annotation("example.com/busy", "")]);
        let outcome = host.step::<NewPolicy>(Phase::BeforeDrain, Subject::Node);
        assert!(matches!(outcome, Outcome::Pending(_)), "{outcome:?}");
    }
}
