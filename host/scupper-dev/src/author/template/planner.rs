//! A drain policy: it decides which pods of a node leave, and in which order.

use scupper_sdk::{Description, Draft, Drain, Node, Planner, Policy, description};

struct NewPolicy;

scupper_sdk::export!(NewPolicy with planner);

impl Policy for NewPolicy {
    fn describe() -> Description {
        description!("Lets pods with the label example.com/last leave after all others")
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

#[cfg(test)]
mod tests {
    use scupper_sdk::testing::{Host, pod};

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
}
