//! What was last heard of the node and its pods, for policies. The engine keeps its own view and decides by that.

use std::collections::BTreeMap;

use scupper_engine::{Answer, Event, Node, Plan, Pod, Uid};

/// The node and its pods as last heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    node: Option<Node>,
    pods: BTreeMap<Uid, Pod>,
}

impl View {
    /// Takes in what the engine is about to hear.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Node(node) => self.node.clone_from(node),
            Event::Pods(pods) | Event::Answer(_, Answer::Pods(pods)) => {
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

    pub(crate) fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    /// The pods that a draft is about: a planner must be shown those and no others.
    pub(crate) fn pods_of<'a>(&'a self, draft: &Plan) -> Vec<&'a Pod> {
        draft
            .decisions
            .iter()
            .filter_map(|decision| self.pods.get(&decision.pod))
            .collect()
    }
}
