//! A recorded drain as a cluster in memory: what its node was like before the drain changed anything, and how long each pod
//! took to end and to be ready elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_api::facts::{FactObject, Metadata, Peer};
use scupper_cluster_model::{PodTimes, Replaced};
use scupper_engine::{Budget, Event, HumanDuration, Intent, Plan, Pod, PolicyInfo, Settings, Time, Uid};
use scupper_forecast::NOTICE;
use scupper_policy_reload::settings_digest;
use scupper_policy_spec::PolicySpec;
use scupper_recording::{Beginning, ObservedTimes, PolicyAnswers, Recording, Turn, waits_for_end};
use thiserror::Error;

use super::comparison::Edition;
use super::dry_run::{Asker, asking_author};
use super::fact_objects::FactObjects;
use super::memory_cluster::MemoryCluster;
use super::recorded_policies::RecordedPolicies;

/// A recorded drain that can be played.
#[derive(Debug)]
pub(crate) struct RecordedCluster {
    /// When the drain began.
    pub start: Time,
    /// Its settings, its policies, and how long it had.
    recorded: Edition,
    /// The names of its policies, without the host's own planners and hooks.
    pub policies: Vec<String>,
    /// The SHA-256 of their settings, by name.
    settings: BTreeMap<String, String>,
    answers: PolicyAnswers,
    beginning: Beginning,
    ends_after: BTreeMap<Uid, Known>,
    /// When pods were gone that were terminating when it began.
    gone_at: BTreeMap<Uid, Time>,
    /// How long a replacement took in the middle, by budget.
    replaced_after: BTreeMap<(String, String), Known>,
    /// What policies had learned when they first asked.
    facts: FactObjects,
    peers: Vec<Peer>,
    /// What happened to the drain, and no play has.
    pub not_played: Vec<String>,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Took(Duration),
    /// More than this.
    Longer(Duration),
}

impl Known {
    const fn least(self) -> Duration {
        match self {
            Self::Took(took) | Self::Longer(took) => took,
        }
    }
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
        let took = times
            .endings
            .into_iter()
            .map(|(pod, took)| (pod, Known::Took(took)));
        let longer = times.cut_endings.into_iter().map(|(pod, took)| {
            let known = match pod.is_finished() {
                true => Known::Took(took),
                false => Known::Longer(took),
            };
            (pod, known)
        });
        let endings = took.chain(longer);
        let machine_is_off = header.request.settings.machine_is_off;
        let machine_is_off = machine_is_off.then(|| "that its machine was off".to_owned());
        let mut replaced_after: BTreeMap<_, _> = medians(times.cut_replacements)
            .map(|(budget, took)| (budget, Known::Longer(took)))
            .collect();
        replaced_after.extend(medians(times.replacements).map(|(budget, took)| (budget, Known::Took(took))));
        Ok(Self {
            start: header.at,
            recorded: Edition {
                asker: Asker {
                    id: header.request.id.clone(),
                    name: header.request.name.clone(),
                    trigger: header.request.trigger.clone(),
                },
                // Surges, and looks at a machine that is off, need what no recording has.
                settings: Settings {
                    surge: None,
                    machine_is_off: false,
                    ..header.request.settings.clone()
                },
                limit: header.request.deadline.map(|deadline| deadline.since(header.at)),
                chain: header.request.policies.iter().map(as_played).collect(),
                specs: Vec::new(),
                without_settings: Vec::new(),
            },
            policies: header.policies.iter().map(|policy| policy.name.clone()).collect(),
            settings: header
                .policies
                .iter()
                .map(|policy| (policy.name.clone(), policy.settings.clone()))
                .collect(),
            answers: PolicyAnswers::of(recording),
            ends_after: endings.map(|(pod, took)| (pod.id.uid, took)).collect(),
            gone_at: gone_at(recording),
            replaced_after,
            facts,
            peers,
            not_played: not_played(recording, &beginning)
                .into_iter()
                .chain(machine_is_off)
                .collect(),
            beginning,
        })
    }

    /// As it was.
    pub(crate) const fn as_recorded(&self) -> &Edition {
        &self.recorded
    }

    /// With this policy and no other.
    pub(crate) fn with_only(&self, spec: &PolicySpec) -> Edition {
        Edition {
            chain: Vec::new(),
            specs: vec![asking_author(spec.clone())],
            ..self.recorded.clone()
        }
    }

    /// The policy had other settings than these.
    pub(super) fn had_other_settings(&self, spec: &PolicySpec) -> bool {
        let recorded = self.settings.get(&spec.name);
        recorded.is_some_and(|settings| *settings != settings_digest(spec))
    }

    /// The policies of the drain that are not among these.
    pub(super) fn policies_without(&self, loaded: &[PolicySpec]) -> RecordedPolicies {
        let names = self.recorded.chain.iter().map(|policy| policy.name.clone());
        let is_missing = |name: &String| loaded.iter().all(|spec| spec.name != *name);
        RecordedPolicies::new(names.filter(is_missing).collect(), self.answers.clone())
    }

    /// What is not known of the time that these pods take to leave.
    pub(super) fn unknown_times(
        &self,
        left: &BTreeSet<Uid>,
        settings: &Settings,
        plan: Option<&Plan>,
    ) -> BTreeSet<String> {
        let mut unknown = BTreeSet::new();
        let leaving: BTreeSet<&Uid> = plan
            .iter()
            .flat_map(|plan| plan.leaving())
            .map(|one| &one.pod)
            .collect();
        let plans = |pod: &&Pod| leaving.contains(&pod.id.uid);
        let began_to_leave = |pod: &&Pod| left.contains(&pod.id.uid) && pod.deletion.is_none();
        for pod in self.pods().filter(began_to_leave) {
            let waves = plan.iter().flat_map(|plan| &plan.waves);
            let waves = waves.filter(|wave| wave.pods.contains(&pod.id.uid));
            let most = waves.filter_map(|wave| wave.max_grace_seconds).min();
            let grace = settings.grace_seconds.unwrap_or(pod.grace_seconds);
            let grace = Duration::from_secs(most.map_or(grace, |most| most.min(grace)));
            match self.ends_after.get(&pod.id.uid) {
                None => _ = unknown.insert(format!("how long {} takes to end", pod.id)),
                Some(Known::Longer(took)) if *took < grace => {
                    let took = HumanDuration(*took);
                    unknown.insert(format!("how long {} takes to end (more than {took})", pod.id));
                }
                Some(_) => {}
            }
            let budget = self
                .beginning
                .budgets
                .iter()
                .find(|(_, budget)| budget.selects(pod));
            // No other pod waits for the replacement of the only one.
            let waiting = |budget: &Budget| {
                self.pods()
                    .filter(|pod| plans(pod) && budget.selects(pod))
                    .count()
                    > 1
            };
            let Some((name, _)) = budget.filter(|(_, budget)| pod.controller.is_some() && waiting(budget))
            else {
                continue;
            };
            let what = format!("when replacements of budget {}/{} are ready", name.0, name.1);
            match self.replaced_after.get(name) {
                None => _ = unknown.insert(what),
                Some(Known::Longer(took)) => {
                    unknown.insert(format!("{what} (after more than {})", HumanDuration(*took)));
                }
                Some(Known::Took(_)) => {}
            }
        }
        unknown
    }

    /// The pods of the node.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.beginning.pods.values()
    }

    /// How long the replacement of this pod took at least, by what its budget saw.
    fn replaced_after(&self, pod: &Pod) -> Duration {
        let budgets = &mut self.beginning.budgets.iter();
        let name = budgets
            .find(|(_, budget)| budget.selects(pod))
            .map(|(name, _)| name);
        let known = name.and_then(|name| self.replaced_after.get(name));
        known.map_or(Duration::ZERO, |known| known.least())
    }

    pub(super) fn cluster(&self) -> MemoryCluster {
        let mut cluster = MemoryCluster::new(self.start, self.beginning.node.clone());
        for (uid, pod) in &self.beginning.pods {
            let known = self.ends_after.get(uid);
            let times = PodTimes {
                ends_after: known.map_or(Duration::ZERO, |known| known.least()),
                replaced: Replaced::by_controller(pod, waits_for_end(pod), self.replaced_after(pod)),
            };
            cluster.model.add_pod(pod.clone(), times);
            if let Some(gone) = self.gone_at.get(uid).filter(|_| pod.deletion.is_some()) {
                cluster.model.ends_at(uid, *gone);
            }
        }
        for budget in self.beginning.budgets.values() {
            cluster.model.set_budget(budget.clone());
        }
        cluster.facts = self.facts.clone();
        if let Some(event) = self.facts.iter().find_map(lifecycle_event) {
            cluster.event = event.clone();
        }
        cluster.peers = self.peers.clone();
        cluster
    }
}

/// A policy of the drain. That the notice of `drain.notify-before` leaves the time for itself is no answer that could differ.
fn as_played(policy: &PolicyInfo) -> PolicyInfo {
    PolicyInfo {
        planner: policy.planner && policy.name != NOTICE,
        ..policy.clone()
    }
}

fn lifecycle_event(object: &FactObject) -> Option<&Metadata> {
    match object {
        FactObject::LifecycleEvent(event) => Some(event),
        _ => None,
    }
}

/// The events that the drain was told of, and when.
fn events(recording: &Recording) -> impl Iterator<Item = (Time, &Event)> {
    recording.turns.iter().flat_map(Turn::events)
}

fn gone_at(recording: &Recording) -> BTreeMap<Uid, Time> {
    let gone = events(recording).filter_map(|(at, event)| match event {
        Event::PodDeleted(uid) => Some((uid.clone(), at)),
        _ => None,
    });
    gone.collect()
}

/// Orders to the drain, pods that came later, and those that ended before they were asked to.
fn not_played(recording: &Recording, beginning: &Beginning) -> Vec<String> {
    let (mut texts, mut others) = (Vec::new(), BTreeSet::new());
    for (at, event) in events(recording) {
        let after = HumanDuration(at.since(recording.header.at));
        match event {
            Event::Cancel { .. } => texts.push(format!("the cancel of this drain after {after}")),
            Event::Lost { .. } => texts.push(format!("the loss of its request after {after}")),
            Event::Pause => texts.push(format!("its pause after {after}")),
            Event::Deadline(deadline) if *deadline != recording.header.request.deadline => {
                texts.push(format!("the change of its deadline after {after}"));
            }
            Event::PodApplied(pod) => match beginning.pods.get(&pod.id.uid) {
                None => _ = others.insert(format!("{}, which came during the drain", pod.id)),
                Some(before) if pod.is_finished() && pod.deletion.is_none() && !before.is_finished() => {
                    others.insert(format!("{}, which ended by itself", pod.id));
                }
                Some(_) => {}
            },
            _ => {}
        }
    }
    texts.into_iter().chain(others).collect()
}

/// The time in the middle of each budget's.
fn medians(times: Vec<((String, String), Duration)>) -> impl Iterator<Item = ((String, String), Duration)> {
    let mut by_budget: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (budget, took) in times {
        by_budget.entry(budget).or_default().push(took);
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times.get(times.len() / 2).copied()
    };
    let medians = by_budget.into_iter();
    medians.filter_map(move |(budget, times)| Some((budget, median(times)?)))
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
            medians.collect::<Vec<_>>(),
            [(budget("cart"), seconds(5)), (budget("web"), seconds(2))]
        );
    }
}
