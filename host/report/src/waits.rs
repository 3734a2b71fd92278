//! Pods that wait for the same: a budget or an API server that refuses holds up hundreds, and the first of them tell what
//! there is to tell. The others are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{PodRef, Reason, Time, Uid};

use crate::drain_status::reason_text;
use crate::messages::count;
use crate::status::same_reason_key;

/// Pods with a line each of those that wait for the same.
const NAMED: usize = 3;

/// Answers to evictions come one by one: those that come within this time are counted together.
const COUNTED_AFTER: Duration = Duration::from_secs(1);

/// The namespace, the reason's name, and what else is the same.
type Key = (String, &'static str, String);

/// Which pods have a line each.
#[derive(Debug, Default)]
pub struct NamedWaits(BTreeMap<Key, BTreeSet<Uid>>);

impl NamedWaits {
    /// Whether this pod has a line. `false`: it is one of those that are counted.
    pub fn names(&mut self, pod: &PodRef, reason: &Reason) -> bool {
        let key = key(pod, reason);
        for (_, others) in self.0.iter_mut().filter(|(other, _)| **other != key) {
            others.remove(&pod.uid);
        }
        let named = self.0.entry(key).or_default();
        if named.len() < NAMED {
            named.insert(pod.uid.clone());
        }
        named.contains(&pod.uid)
    }

    /// It waits no longer: another pod may have its line.
    pub fn forget(&mut self, pod: &Uid) {
        for named in self.0.values_mut() {
            named.remove(pod);
        }
    }
}

/// Pods that are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreWaits {
    /// Their namespace.
    pub namespace: String,
    /// How many.
    pub pods: usize,
    /// What they wait for.
    pub reason: Reason,
}

impl MoreWaits {
    /// Counts pods by what they wait for.
    pub fn of<'a>(pods: impl IntoIterator<Item = (&'a PodRef, &'a Reason)>) -> Vec<Self> {
        let mut groups: BTreeMap<Key, Self> = BTreeMap::new();
        for (pod, reason) in pods {
            let new = || Self {
                namespace: pod.namespace.clone(),
                pods: 0,
                reason: reason.clone(),
            };
            groups.entry(key(pod, reason)).or_insert_with(new).pods += 1;
        }
        groups.into_values().collect()
    }

    /// `and 7 more pods of shop wait for the same: budget cart blocks it: …`
    pub(crate) fn text(&self, now: Time) -> String {
        format!(
            "and {} of {} {} for the same: {}",
            count(self.pods, "more pod"),
            self.namespace,
            if self.pods == 1 { "waits" } else { "wait" },
            reason_text(&self.reason, now)
        )
    }
}

/// Counts pods until a line tells how many they are.
#[derive(Debug, Default)]
pub(crate) struct UntoldWaits {
    pods: BTreeMap<Uid, (PodRef, Reason)>,
    /// Since when the first of them waits for that line.
    since: Time,
}

impl UntoldWaits {
    pub(crate) fn insert(&mut self, now: Time, pod: &PodRef, reason: &Reason) {
        if self.pods.is_empty() {
            self.since = now;
        }
        self.pods.insert(pod.uid.clone(), (pod.clone(), reason.clone()));
    }

    /// It waits no longer.
    pub(crate) fn remove(&mut self, pod: &Uid) {
        self.pods.remove(pod);
    }

    /// Those of which it is time to tell. `is_last`: there is no later time.
    pub(crate) fn take(&mut self, now: Time, is_last: bool) -> Vec<MoreWaits> {
        if !is_last && now.since(self.since) < COUNTED_AFTER {
            return Vec::new();
        }
        let pods = std::mem::take(&mut self.pods);
        MoreWaits::of(pods.values().map(|(pod, reason)| (pod, reason)))
    }
}

fn key(pod: &PodRef, reason: &Reason) -> Key {
    let (name, what) = same_reason_key(reason);
    (pod.namespace.clone(), name, what.to_owned())
}
