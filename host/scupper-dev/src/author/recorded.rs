//! A recorded drain as a cluster in memory: what its node was like before the drain changed anything, and how long each pod
//! took to end and to be ready elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_api::facts::{FactObject, Peer};
use scupper_cluster_model::{PodTimes, Replaced};
use scupper_engine::{Intent, Pod, Settings, Time, Uid};
use scupper_recording::{Beginning, ObservedTimes, Recording, waits_for_end};
use thiserror::Error;

use super::fact_objects::FactObjects;
use super::memory_cluster::MemoryCluster;

/// The beginning of a recorded drain.
#[derive(Debug)]
pub(crate) struct RecordedCluster {
    /// When the drain began.
    pub start: Time,
    /// How long it had.
    pub limit: Option<Duration>,
    /// Its settings.
    pub settings: Settings,
    beginning: Beginning,
    ends_after: BTreeMap<Uid, Duration>,
    /// How long a replacement took in the middle, by budget.
    replaced_after: BTreeMap<(String, String), Duration>,
    /// What policies had learned when they first asked.
    facts: FactObjects,
    peers: Vec<Peer>,
}

/// Why a recorded drain cannot be played with another policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum NotPlayable {
    /// No planner and no eviction is in it.
    #[error("it is an uncordon")]
    Uncordon,
    /// What the earlier process planned, and for which pods, is not in it.
    #[error("it continues the drain of an earlier process")]
    Continues,
    /// What the engine needs to plan is not in it.
    #[error("it ends before the drain had seen the node, its pods and the budgets")]
    TooShort,
}

impl RecordedCluster {
    pub(crate) fn of(recording: &Recording) -> Result<Self, NotPlayable> {
        let header = &recording.header;
        if header.request.intent == Intent::Uncordon {
            return Err(NotPlayable::Uncordon);
        }
        if header.checkpoint.is_some() {
            return Err(NotPlayable::Continues);
        }
        let beginning = Beginning::of(recording).ok_or(NotPlayable::TooShort)?;
        let (facts, peers) = facts(recording);
        let times = ObservedTimes::of(recording);
        let endings = times.endings.into_iter().chain(times.cut_endings);
        Ok(Self {
            start: header.at,
            limit: header.request.deadline.map(|deadline| deadline.since(header.at)),
            settings: header.request.settings.clone(),
            beginning,
            ends_after: endings.map(|(pod, took)| (pod.id.uid, took)).collect(),
            replaced_after: medians(times.replacements),
            facts,
            peers,
        })
    }

    /// The pods of the node.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.beginning.pods.values()
    }

    /// How long the replacement of this pod took, by what its budget saw.
    fn replaced_after(&self, pod: &Pod) -> Option<Duration> {
        let budget = self
            .beginning
            .budgets
            .values()
            .find(|budget| budget.selects(pod))?;
        let name = (budget.namespace.clone(), budget.name.clone());
        self.replaced_after.get(&name).copied()
    }

    pub(super) fn cluster(&self) -> MemoryCluster {
        let mut cluster = MemoryCluster::new(self.start, self.beginning.node.clone());
        for (uid, pod) in &self.beginning.pods {
            let mut times = PodTimes::ends_after(self.ends_after.get(uid).copied());
            if let Some(after) = self.replaced_after(pod) {
                times.replaced = Replaced::by_controller(pod, waits_for_end(pod), after);
            }
            cluster.model.add_pod(pod.clone(), times);
        }
        for budget in self.beginning.budgets.values() {
            cluster.model.set_budget(budget.clone());
        }
        cluster.facts = self.facts.clone();
        cluster.peers = self.peers.clone();
        cluster
    }
}

/// The time in the middle of each budget's.
fn medians(times: Vec<((String, String), Duration)>) -> BTreeMap<(String, String), Duration> {
    let mut by_budget: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (budget, took) in times {
        by_budget.entry(budget).or_default().push(took);
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied()
    };
    let medians = by_budget.into_iter();
    medians
        .filter_map(|(budget, times)| Some((budget, median(times)?)))
        .collect()
}

/// The first edition of each object: as the policies had it for their first plan.
fn facts(recording: &Recording) -> (FactObjects, Vec<Peer>) {
    let (mut facts, mut peers) = (FactObjects::default(), BTreeMap::new());
    let learned = recording.facts.iter().flat_map(|learned| &learned.objects);
    for object in learned {
        match object {
            FactObject::Peer(peer) => {
                peers.entry(&peer.id.uid).or_insert_with(|| (**peer).clone());
            }
            FactObject::PodSpec(spec) if !facts.has_spec(spec) => facts.add_spec((**spec).clone()),
            // The drain itself watches budgets.
            FactObject::PodSpec(_) | FactObject::Budget(_) => {}
            object if facts.has(object) => {}
            object => facts.add(object.clone()),
        }
    }
    (facts, peers.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_has_the_time_in_its_middle() {
        let budget = |name: &str| ("shop".to_owned(), name.to_owned());
        let seconds = Duration::from_secs;
        let times = [("cart", 5), ("web", 2), ("cart", 90), ("cart", 4)];
        let medians = medians(times.map(|(name, took)| (budget(name), seconds(took))).into());
        assert_eq!(
            medians.into_iter().collect::<Vec<_>>(),
            [(budget("cart"), seconds(5)), (budget("web"), seconds(2))]
        );
    }
}
