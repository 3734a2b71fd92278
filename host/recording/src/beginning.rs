//! What a drain saw before it did anything.

use std::collections::BTreeMap;

use scupper_engine::{Budget, Event, Node, Pod, Uid};

use crate::read::Recording;

/// The cluster as the drain first acted on it.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The node.
    pub node: Node,
    /// Its pods.
    pub pods: BTreeMap<Uid, Pod>,
    /// All budgets, by namespace and name.
    pub budgets: BTreeMap<(String, String), Budget>,
}

impl Beginning {
    /// `None`: the recording ends before the drain had seen the node, its pods and the budgets.
    pub fn of(recording: &Recording) -> Option<Self> {
        let mut seen = Seen::default();
        for turn in &recording.turns {
            turn.events().for_each(|(_, event)| seen.event(event));
            if seen.is_complete() && !turn.commands.is_empty() {
                break;
            }
        }
        Some(Self {
            node: seen.node?,
            pods: seen.pods?,
            budgets: seen.budgets?,
        })
    }
}

/// What the engine was told until it first acted.
#[derive(Default)]
struct Seen {
    node: Option<Node>,
    pods: Option<BTreeMap<Uid, Pod>>,
    budgets: Option<BTreeMap<(String, String), Budget>>,
}

impl Seen {
    const fn is_complete(&self) -> bool {
        self.node.is_some() && self.pods.is_some() && self.budgets.is_some()
    }

    fn event(&mut self, event: &Event) {
        let key = |budget: &Budget| (budget.namespace.clone(), budget.name.clone());
        match event {
            Event::Node(Some(node)) => self.node = Some(node.clone()),
            Event::Pods(pods) => {
                let pods = pods.iter().map(|pod| (pod.id.uid.clone(), pod.clone()));
                self.pods = Some(pods.collect());
            }
            Event::PodApplied(pod) => {
                if let Some(pods) = &mut self.pods {
                    pods.insert(pod.id.uid.clone(), pod.clone());
                }
            }
            Event::PodDeleted(uid) => {
                if let Some(pods) = &mut self.pods {
                    pods.remove(uid);
                }
            }
            Event::Budgets(budgets) => {
                let budgets = budgets.iter().map(|budget| (key(budget), budget.clone()));
                self.budgets = Some(budgets.collect());
            }
            Event::BudgetApplied(budget) => {
                if let Some(budgets) = &mut self.budgets {
                    budgets.insert(key(budget), budget.clone());
                }
            }
            _ => {}
        }
    }
}
