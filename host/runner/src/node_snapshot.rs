//! The node and pods that a policy is shown in one call: exactly the state on which the engine decides.

use std::collections::BTreeMap;

use scupper_engine::{Drain, Node, Plan, Pod};

/// The node and pods that one call of a policy shows.
#[derive(Clone, Debug, Default)]
pub struct NodeSnapshot {
    /// The node, if the engine has seen it.
    pub node: Option<Node>,
    /// The pods.
    pub pods: Vec<Pod>,
}

impl NodeSnapshot {
    /// For a planner: the pods that its draft decides on.
    pub fn for_planner(drain: &Drain) -> Self {
        Self {
            node: drain.node().cloned(),
            pods: drain.pods_to_plan().to_vec(),
        }
    }

    /// For a hook: all pods of the node.
    pub fn for_hook(drain: &Drain) -> Self {
        Self {
            node: drain.node().cloned(),
            pods: drain.pods().cloned().collect(),
        }
    }

    /// The pods of a draft, in its order.
    pub(crate) fn pods_of<'a>(&'a self, draft: &Plan) -> Vec<&'a Pod> {
        let by_uid: BTreeMap<_, _> = self.pods.iter().map(|pod| (&pod.id.uid, pod)).collect();
        let decisions = draft.decisions.iter();
        let pods = decisions.filter_map(|decision| by_uid.get(&decision.pod));
        pods.copied().collect()
    }
}
