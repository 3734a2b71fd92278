//! Pods in a recording: whole when they are new, and afterwards what has changed. A pod that leaves changes four times, and
//! nearly all of it stays as it was.

use std::collections::HashMap;

use scupper_engine::{Condition, Deletion, Event, Pod, PodPhase, Uid};
use serde::{Deserialize, Serialize};

/// The pods as the engine was told of them last.
#[derive(Debug, Default)]
pub(crate) struct KnownPods(HashMap<Uid, Pod>);

/// What is new about a pod.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PodChange {
    uid: Uid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<PodPhase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletion: Option<Deletion>,
    /// Those that are new or other than the one of their kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

impl KnownPods {
    /// The engine is told this. `Some`: it is all told by this change of a pod.
    pub(crate) fn told(&mut self, event: &Event) -> Option<PodChange> {
        match event {
            Event::Pods(pods) => {
                let pods = pods.iter().map(|pod| (pod.id.uid.clone(), pod.clone()));
                self.0 = pods.collect();
            }
            Event::PodDeleted(uid) => {
                self.0.remove(uid);
            }
            Event::PodApplied(pod) => {
                let Some(known) = self.0.get_mut(&pod.id.uid) else {
                    self.0.insert(pod.id.uid.clone(), pod.clone());
                    return None;
                };
                let change = PodChange::between(known, pod);
                change.apply(known);
                if known == pod {
                    return Some(change);
                }
                known.clone_from(pod);
            }
            _ => {}
        }
        None
    }

    /// What a change tells; `None`: of a pod that is not known.
    pub(crate) fn changed(&mut self, change: &PodChange) -> Option<Event> {
        let known = self.0.get_mut(&change.uid)?;
        change.apply(known);
        Some(Event::PodApplied(known.clone()))
    }
}

impl PodChange {
    /// As far as it can say it.
    fn between(before: &Pod, after: &Pod) -> Self {
        let is_new = |condition: &&Condition| !before.conditions.contains(condition);
        Self {
            uid: after.id.uid.clone(),
            phase: (before.phase != after.phase).then_some(after.phase),
            ready: (before.ready != after.ready).then_some(after.ready),
            deletion: after.deletion.filter(|_| before.deletion != after.deletion),
            conditions: after.conditions.iter().filter(is_new).cloned().collect(),
        }
    }

    fn apply(&self, pod: &mut Pod) {
        pod.phase = self.phase.unwrap_or(pod.phase);
        pod.ready = self.ready.unwrap_or(pod.ready);
        pod.deletion = self.deletion.or(pod.deletion);
        for condition in &self.conditions {
            let same_kind = |known: &&mut Condition| known.kind == condition.kind;
            match pod.conditions.iter_mut().find(same_kind) {
                Some(known) => known.clone_from(condition),
                None => pod.conditions.push(condition.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Time;
    use scupper_engine_simulation::{Step, processes};

    use super::*;

    /// A pod of the simulation.
    fn pod() -> Pod {
        let processes = (0..).flat_map(processes);
        let steps = processes.flat_map(|process| process.steps);
        let mut pods = steps.filter_map(|step| match step {
            Step::Event(_, Event::Pods(pods)) => pods.into_iter().next(),
            _ => None,
        });
        Pod {
            deletion: None,
            conditions: vec![condition("Ready", "True")],
            ..pods.next().unwrap()
        }
    }

    fn condition(kind: &str, status: &str) -> Condition {
        Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: String::new(),
            message: String::new(),
            since: None,
        }
    }

    fn knowing(pod: &Pod) -> KnownPods {
        let mut known = KnownPods::default();
        assert!(known.told(&Event::Pods(vec![pod.clone()])).is_none());
        known
    }

    #[test]
    fn a_change_tells_the_whole_pod_to_who_knows_it() {
        let before = pod();
        let after = Pod {
            phase: PodPhase::Failed,
            ready: !before.ready,
            deletion: Some(Deletion {
                at: Time::from_millis(5),
                grace_seconds: 3,
            }),
            conditions: vec![condition("Ready", "False"), condition("DisruptionTarget", "True")],
            ..before.clone()
        };
        let told = Event::PodApplied(after.clone());
        let change = knowing(&before).told(&told).unwrap();
        let text = serde_json::to_string(&change).unwrap();
        let change: PodChange = serde_json::from_str(&text).unwrap();
        let mut reader = knowing(&before);
        assert_eq!(reader.changed(&change), Some(told));
        assert_eq!(KnownPods::default().changed(&change), None);
        // Once more the same: nothing is new.
        let same = reader.told(&Event::PodApplied(after.clone())).unwrap();
        assert_eq!(
            serde_json::to_value(&same).unwrap(),
            serde_json::json!({"uid": after.id.uid})
        );
        reader.told(&Event::PodDeleted(after.id.uid));
        assert_eq!(reader.changed(&change), None);
    }

    #[test]
    fn what_a_change_cannot_say_is_told_whole() {
        let before = Pod {
            deletion: Some(Deletion {
                at: Time::from_millis(5),
                grace_seconds: 3,
            }),
            ..pod()
        };
        let changes: [fn(&mut Pod); 4] = [
            |pod| pod.deletion = None,
            |pod| pod.conditions.clear(),
            |pod| pod.conditions.insert(0, condition("DisruptionTarget", "True")),
            |pod| {
                pod.labels.insert("a".to_owned(), "b".to_owned());
            },
        ];
        for change in changes {
            let (mut known, mut after) = (knowing(&before), before.clone());
            change(&mut after);
            assert!(
                known.told(&Event::PodApplied(after.clone())).is_none(),
                "{after:?}"
            );
            let again = known.told(&Event::PodApplied(after)).unwrap();
            assert!(again.conditions.is_empty() && again.deletion.is_none());
        }
    }
}
