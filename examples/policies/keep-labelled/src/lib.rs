//! Keeps pods that their owners marked: a minimal planner.

use scupper_sdk::{Description, Draft, Drain, Node, Planner, Policy, description};

/// The label, with any value.
const LABEL: &str = "example.com/keep";

struct KeepLabelled;

scupper_sdk::export!(KeepLabelled with planner);

impl Policy for KeepLabelled {
    fn describe() -> Description {
        description!("Keeps pods that have the label example.com/keep")
    }
}

impl Planner for KeepLabelled {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.leaving() {
            if pod.label(LABEL).is_some() {
                draft.keep(pod, format!("it has the label {LABEL}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use scupper_sdk::{
        Verdict,
        testing::{Host, pod},
    };

    use super::KeepLabelled;

    #[test]
    fn a_marked_pod_stays() {
        let host = Host::new();
        host.pods([
            pod("shop/cart"),
            pod("shop/db").with_label("example.com/keep", ""),
        ]);
        let plan = host.plan::<KeepLabelled>().unwrap();
        assert_eq!(plan.verdict("shop/db"), Some(Verdict::Keep));
        assert_eq!(plan.reason("shop/db"), Some("it has the label example.com/keep"));
        assert_eq!(plan.waves(), ["all: shop/cart"]);
    }
}
