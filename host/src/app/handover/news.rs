//! What is worth telling of a node between two looks at it.

use std::collections::BTreeMap;

use scupper_engine::{PodRef, Time, Uid};

use crate::report::{NodeStatus, Seen};

/// Conditions that say something of a drain.
const CONDITIONS: [&str; 2] = ["DrainInProgress", "Drained"];

/// What was told of a node.
#[derive(Default)]
pub(super) struct News {
    pods: BTreeMap<Uid, PodRef>,
    waits: BTreeMap<Uid, String>,
    hooks: Vec<(String, String)>,
    conditions: Option<BTreeMap<String, (String, String)>>,
    state: String,
    deadline: Option<Time>,
}

impl News {
    /// What has become different.
    pub(super) fn hear(&mut self, event: &str, status: &NodeStatus, now: Time) -> Vec<Seen> {
        let mut news: Vec<_> = self.of_event(event, status).into_iter().collect();
        news.extend(self.of_conditions(status));
        news.extend(self.of_hooks(status));
        news.extend(self.of_pods(status));
        news.extend(self.of_waits(status, now));
        news
    }

    fn of_event(&mut self, event: &str, status: &NodeStatus) -> Option<Seen> {
        let wish = status.wishes.iter().find(|wish| wish.name == event)?;
        let known = self.state == wish.state && self.deadline == wish.deadline;
        self.state.clone_from(&wish.state);
        self.deadline = wish.deadline;
        (!known && wish.state != "Pending").then(|| Seen::State {
            state: wish.state.clone(),
            deadline: wish.deadline,
        })
    }

    /// What stands there from before is no news.
    fn of_conditions(&mut self, status: &NodeStatus) -> Vec<Seen> {
        let ours = status.node.conditions.iter();
        let ours = ours.filter(|condition| CONDITIONS.contains(&condition.kind.as_str()));
        let now: BTreeMap<_, _> = ours
            .map(|condition| {
                let said = (condition.status.clone(), condition.message.clone());
                (condition.kind.clone(), said)
            })
            .collect();
        let Some(before) = self.conditions.replace(now.clone()) else {
            return Vec::new();
        };
        let changed = now
            .into_iter()
            .filter(|(kind, said)| before.get(kind) != Some(said));
        let seen = changed.map(|(kind, (status, message))| Seen::Condition {
            condition: format!("{kind}={status}"),
            message,
        });
        seen.collect()
    }

    fn of_hooks(&mut self, status: &NodeStatus) -> Vec<Seen> {
        let hooks = status.node.checkpoint.iter().flat_map(|mark| &mark.hooks);
        let mut hooks: Vec<_> = hooks
            .map(|hook| (hook.policy.clone(), hook.phase.to_string()))
            .collect();
        hooks.dedup();
        let before = std::mem::replace(&mut self.hooks, hooks.clone());
        let new = hooks.into_iter().filter(|hook| !before.contains(hook));
        new.map(|(policy, phase)| Seen::Hook { policy, phase }).collect()
    }

    fn of_pods(&mut self, status: &NodeStatus) -> Vec<Seen> {
        let now: BTreeMap<_, _> = status
            .pods
            .iter()
            .map(|pod| (pod.id.uid.clone(), pod.id.clone()))
            .collect();
        let before = std::mem::replace(&mut self.pods, now);
        let gone = before.into_iter().filter(|(uid, _)| !self.pods.contains_key(uid));
        let here = self.pods.len();
        gone.map(|(_, pod)| Seen::PodGone { pod, here }).collect()
    }

    fn of_waits(&mut self, status: &NodeStatus, now: Time) -> Vec<Seen> {
        let mut news = Vec::new();
        let mut waits = BTreeMap::new();
        for (pod, reason, message) in status.stuck(now) {
            if self.waits.get(&pod.uid).map(String::as_str) != Some(reason) {
                let pod = pod.clone();
                news.push(Seen::Waits { pod, reason, message });
            }
            waits.insert(pod.uid.clone(), reason.to_owned());
        }
        self.waits = waits;
        news
    }
}
