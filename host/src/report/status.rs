//! Where a node stands by what the API server shows, for people and for machines.
//!
//! It is read from outside of the drain: what only the driver knows, such as a pod's wave, is not guessed.

mod lines;
mod reasons;

use scupper_engine::{Budget, Node, Pod, PodRef, Reason, Time};
use serde_json::{Value, json};

pub use lines::status_lines;

/// Everything that the API server shows of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node.
    pub node: Node,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// All budgets that may be read.
    pub budgets: Vec<Budget>,
    /// Wishes for the node that are there.
    pub wishes: Vec<NodeWish>,
}

/// A LifecycleEvent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeWish {
    /// Its name.
    pub name: String,
    /// Which transition it asks for.
    pub transition: String,
    /// How far it has come, in the API's word.
    pub state: String,
    /// Its deadline.
    pub deadline: Option<Time>,
    /// It is being deleted.
    pub deleting: bool,
}

impl NodeStatus {
    /// Every pod, and why it is still there as far as the API server shows it.
    fn reasons(&self, now: Time) -> Vec<(&PodRef, Option<Reason>)> {
        let mut pods: Vec<&Pod> = self.pods.iter().collect();
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        let reason = |pod: &Pod| reasons::reason(pod, &self.node, &self.budgets, now);
        pods.into_iter().map(|pod| (&pod.id, reason(pod))).collect()
    }
}

/// As one object.
pub fn status_to_json(status: &NodeStatus, now: Time) -> Value {
    let NodeStatus { node, wishes, .. } = status;
    let drain = node.checkpoint.as_ref().map(|mark| {
        let hooks = mark.hooks.iter().map(|hook| {
            json!({
                "policy": hook.policy, "phase": hook.phase.to_string(), "since": hook.started.as_millis(),
            })
        });
        json!({
            "name": mark.name, "trigger": mark.trigger, "phase": mark.phase.to_string(),
            "started": mark.started.as_millis(), "deadline": mark.deadline.map(Time::as_millis),
            "hooks": hooks.collect::<Vec<_>>(),
        })
    });
    let conditions = lines::conditions(node).map(|condition| {
        json!({
            "type": condition.kind, "status": condition.status, "reason": condition.reason,
            "message": condition.message, "since": condition.since.map(Time::as_millis),
        })
    });
    let wishes = wishes.iter().map(|wish| {
        json!({
            "name": wish.name, "transition": wish.transition, "state": wish.state,
            "deadline": wish.deadline.map(Time::as_millis), "deleting": wish.deleting,
        })
    });
    let pods = status.reasons(now).into_iter().map(|(pod, reason)| {
        json!({
            "pod": pod.to_string(), "uid": pod.uid.0, "reason": reason.as_ref().map(Reason::name),
            "message": reason.as_ref().map(|reason| lines::told(reason, now)),
        })
    });
    json!({
        "node": node.name, "cordon": lines::cordon(node), "drain": drain,
        "conditions": conditions.collect::<Vec<_>>(), "lifecycleEvents": wishes.collect::<Vec<_>>(),
        "pods": pods.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;
