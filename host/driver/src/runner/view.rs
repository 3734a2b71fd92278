//! What was last heard of the node and its pods, for policies. The engine keeps its own view and decides by that.

use std::collections::BTreeMap;

use scupper_engine::{Event, Node, Plan, Pod, Uid};

/// The node and its pods as last heard.
#[derive(Clone, Debug, Default)]
pub struct View {
    node: Option<Node>,
    pods: BTreeMap<Uid, Pod>,
}

impl View {
    /// Takes in what the engine is about to hear.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Node(node) => self.node.clone_from(node),
            // An answered list is left to the engine: it may be older than what the watch has told since.
            Event::Pods(pods) => {
                self.pods = pods.iter().map(|pod| (pod.id.uid.clone(), pod.clone())).collect();
            }
            Event::PodApplied(pod) => {
                self.pods.insert(pod.id.uid.clone(), pod.clone());
            }
            Event::PodDeleted(uid) => {
                self.pods.remove(uid);
            }
            _ => {}
        }
    }

    /// The node, if it was heard of.
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// All pods of the node.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    /// The same node with exactly these pods: those that a planner is to decide on.
    pub fn with_pods(&self, pods: &[Pod]) -> Self {
        Self {
            node: self.node.clone(),
            pods: pods.iter().map(|pod| (pod.id.uid.clone(), pod.clone())).collect(),
        }
    }

    /// The pods that a draft is about: a planner must be shown those and no others.
    pub fn pods_of<'a>(&'a self, draft: &Plan) -> Vec<&'a Pod> {
        draft
            .decisions
            .iter()
            .filter_map(|decision| self.pods.get(&decision.pod))
            .collect()
    }
}
