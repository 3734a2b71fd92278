//! Pods in a recording: whole when they are new, and afterwards what has changed. A pod that leaves changes four times, and
//! nearly all of it stays as it was.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use scupper_engine::{Condition, Deletion, Event, Pod, PodPhase, Uid};
use serde::{Deserialize, Serialize};

/// What is new about a pod. Who writes it borrows the conditions.
#[derive(Debug, Serialize, Deserialize)]
pub struct PodChange<C = Condition> {
    uid: Uid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<PodPhase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletion: Option<Deletion>,
    /// Those that are new or other than the one of their kind.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<C>,
}

/// The pods as the engine was told of them last, for who writes. A pod has dozens of texts, and comparing them all with those
/// of its last state took a third of a recording's CPU time. So only digests are kept, those of this process alone, because
/// strangers write the texts.
#[derive(Debug, Default)]
pub(crate) struct WrittenPods(HashMap<Uid, WrittenPod, RandomState>);

#[derive(Debug)]
struct WrittenPod {
    phase: PodPhase,
    ready: bool,
    deletion: Option<Deletion>,
    conditions: Vec<ConditionDigest>,
    /// Of everything else.
    rest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConditionDigest {
    kind: u64,
    all: u64,
}

impl WrittenPods {
    /// The engine is told this. `Some`: it is all told by this change of a pod.
    pub(crate) fn told<'a>(&mut self, event: &'a Event) -> Option<PodChange<&'a Condition>> {
        match event {
            Event::Pods(pods) => {
                self.0.clear();
                for pod in pods {
                    let now = WrittenPod::of(pod, self.0.hasher());
                    self.0.insert(pod.id.uid.clone(), now);
                }
                None
            }
            Event::PodDeleted(uid) => {
                self.0.remove(uid);
                None
            }
            Event::PodApplied(pod) => {
                let digests = self.0.hasher().clone();
                match self.0.get_mut(&pod.id.uid) {
                    Some(known) => known.change_to(pod, &digests),
                    None => {
                        self.0.insert(pod.id.uid.clone(), WrittenPod::of(pod, &digests));
                        None
                    }
                }
            }
            _ => None,
        }
    }
}

impl WrittenPod {
    fn of(pod: &Pod, digests: &RandomState) -> Self {
        let conditions = pod.conditions.iter();
        Self {
            phase: pod.phase,
            ready: pod.ready,
            deletion: pod.deletion,
            conditions: conditions.map(|it| ConditionDigest::of(it, digests)).collect(),
            rest: rest_of(pod, digests),
        }
    }

    /// The pod is like this now. `None`: a change cannot say it, so the pod is to be written whole.
    fn change_to<'a>(&mut self, pod: &'a Pod, digests: &RandomState) -> Option<PodChange<&'a Condition>> {
        let is_taken_back = self.deletion.is_some() && pod.deletion.is_none();
        let is_like = !is_taken_back && self.rest == rest_of(pod, digests);
        let conditions = is_like.then(|| self.changed_conditions(pod, digests)).flatten();
        let Some(conditions) = conditions else {
            *self = Self::of(pod, digests);
            return None;
        };
        let change = PodChange {
            uid: pod.id.uid.clone(),
            phase: (self.phase != pod.phase).then_some(pod.phase),
            ready: (self.ready != pod.ready).then_some(pod.ready),
            deletion: pod.deletion.filter(|_| self.deletion != pod.deletion),
            conditions,
        };
        (self.phase, self.ready, self.deletion) = (pod.phase, pod.ready, pod.deletion);
        Some(change)
    }

    /// Those that are new or other than the one of their kind. `None`: with these alone, the reader would have another list.
    fn changed_conditions<'a>(&mut self, pod: &'a Pod, digests: &RandomState) -> Option<Vec<&'a Condition>> {
        let mut changed = Vec::new();
        for (place, condition) in pod.conditions.iter().enumerate() {
            let all = digests.hash_one(condition);
            if self.conditions.get(place).is_some_and(|known| known.all == all) {
                continue;
            }
            let kind = digests.hash_one(&condition.kind);
            let now = ConditionDigest { kind, all };
            // As who reads it does.
            match self.conditions.iter().position(|known| known.kind == kind) {
                Some(known) if known == place => *self.conditions.get_mut(place)? = now,
                None if self.conditions.len() == place => self.conditions.push(now),
                _ => return None,
            }
            changed.push(condition);
        }
        (self.conditions.len() == pod.conditions.len()).then_some(changed)
    }
}

impl ConditionDigest {
    fn of(condition: &Condition, digests: &RandomState) -> Self {
        Self {
            kind: digests.hash_one(&condition.kind),
            all: digests.hash_one(condition),
        }
    }
}

/// Of all that a change cannot say.
fn rest_of(pod: &Pod, digests: &RandomState) -> u64 {
    let Pod {
        id,
        node,
        labels,
        annotations,
        controller,
        phase: _,
        ready: _,
        conditions: _,
        priority,
        priority_class,
        grace_seconds,
        created,
        deletion: _,
        finalizers,
        empty_dir,
        host_network,
        hostname,
        cordon_toleration,
        volume_claims,
        host_paths,
    } = pod;
    let of_api = (id, node, labels, annotations, controller, created, finalizers);
    let of_spec = (
        (priority, priority_class, grace_seconds),
        (empty_dir, host_network, hostname),
        (cordon_toleration, volume_claims, host_paths),
    );
    digests.hash_one((of_api, of_spec))
}

/// The pods as the engine was told of them last, for who reads.
#[derive(Debug, Default)]
pub struct KnownPods(HashMap<Uid, Pod>);

impl KnownPods {
    /// This line tells of pods as a whole.
    pub fn told(&mut self, event: &Event) {
        match event {
            Event::Pods(pods) => {
                let pods = pods.iter().map(|pod| (pod.id.uid.clone(), pod.clone()));
                self.0 = pods.collect();
            }
            Event::PodDeleted(uid) => {
                self.0.remove(uid);
            }
            Event::PodApplied(pod) => {
                self.0.insert(pod.id.uid.clone(), pod.clone());
            }
            _ => {}
        }
    }

    /// What a change tells; `None`: of a pod that is not known.
    pub fn changed(&mut self, change: PodChange) -> Option<Event> {
        let pod = self.0.get_mut(&change.uid)?;
        pod.phase = change.phase.unwrap_or(pod.phase);
        pod.ready = change.ready.unwrap_or(pod.ready);
        pod.deletion = change.deletion.or(pod.deletion);
        for condition in change.conditions {
            match pod
                .conditions
                .iter_mut()
                .find(|known| known.kind == condition.kind)
            {
                Some(known) => *known = condition,
                None => pod.conditions.push(condition),
            }
        }
        Some(Event::PodApplied(pod.clone()))
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Time;
    use scupper_engine_simulation::any_pod;

    use super::*;

    /// A pod of the simulation.
    fn pod() -> Pod {
        Pod {
            deletion: None,
            conditions: vec![condition("Ready", "True")],
            ..any_pod().unwrap()
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

    /// Who writes and who reads, both of whom know this pod.
    fn knowing(pod: &Pod) -> (WrittenPods, KnownPods) {
        let (mut writer, mut reader) = (WrittenPods::default(), KnownPods::default());
        let pods = Event::Pods(vec![pod.clone()]);
        assert!(writer.told(&pods).is_none());
        reader.told(&pods);
        (writer, reader)
    }

    fn read(change: &PodChange<&Condition>) -> PodChange {
        serde_json::from_str(&serde_json::to_string(change).unwrap()).unwrap()
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
        let (mut writer, mut reader) = knowing(&before);
        let change = writer.told(&told).unwrap();
        assert_eq!(KnownPods::default().changed(read(&change)), None);
        assert_eq!(reader.changed(read(&change)), Some(told.clone()));
        // Once more the same: nothing is new.
        let same = writer.told(&told).unwrap();
        assert_eq!(
            serde_json::to_value(&same).unwrap(),
            serde_json::json!({"uid": after.id.uid})
        );
        reader.told(&Event::PodDeleted(after.id.uid));
        assert_eq!(reader.changed(read(&change)), None);
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
            let ((mut writer, _), mut after) = (knowing(&before), before.clone());
            change(&mut after);
            let told = Event::PodApplied(after);
            assert!(writer.told(&told).is_none(), "{told:?}");
            let again = writer.told(&told).unwrap();
            assert!(again.conditions.is_empty() && again.deletion.is_none());
        }
    }
}
