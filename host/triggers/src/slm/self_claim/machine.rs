//! Which event of this node is worked at, and when: one at a time, claimed ones first, then the oldest. It must not
//! read a clock nor do anything: it says what is to be done, and hears what came of it.

use std::collections::{BTreeMap, VecDeque};

use scupper_engine::{Duration, Settings, Time};

use super::api::{ClaimError, EventSnapshot, VersionedEvent};
use super::rules::{ClaimAction, ClaimRules};
use crate::slm::call::Reply;
use crate::slm::{ClaimStatus, LifecycleChange, LifecycleEvent};

/// An event is looked at again after so long although nothing has changed: a kubelet does so, too.
const RECHECK_AFTER: Duration = Duration::from_secs(10);
/// Events of others are looked at rarely: a transition may be given to us.
const RECHECK_OTHERS_AFTER: Duration = Duration::from_secs(60);
/// After the first failure; doubled after each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// Another driver's event whose deadline passed so long ago does not hold up ours any more.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// The most finished events of a node that are kept, however long they may be.
const MAX_RETAINED: usize = 10;

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum ActionResult {
    /// This was seen.
    Read(Result<EventSnapshot, ClaimError>),
    /// The event is like this now.
    Written(Result<VersionedEvent, ClaimError>),
    /// The event is deleted.
    Deleted(Result<(), ClaimError>),
    /// The condition is written.
    Set(Result<(), ClaimError>),
    /// The door has answered; `None`: it has closed.
    Answered(Option<Reply>),
}

/// What people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum ClaimNotice {
    /// An event has become this.
    Became { event: String, claim: ClaimStatus },
    /// An event failed, and why.
    Failed { event: String, why: String },
    /// An event is left as it is for now, and why.
    Postponed { event: String, why: String },
}

/// Which event is worked at, and when.
#[derive(Debug)]
pub(in crate::slm) struct ClaimMachine {
    rules: ClaimRules,
    /// How long the API server may refuse to write the condition before the event fails.
    forbidden_timeout: Duration,
    /// It is our part to claim.
    claims_events: bool,
    /// The watch has shown everything once.
    listed: bool,
    events: BTreeMap<String, LifecycleEvent>,
    backoffs: BTreeMap<String, Backoff>,
    current: Option<CurrentEvent>,
    /// How long a finished event is kept.
    retention: Duration,
    /// When this process first saw each event finished.
    finished: BTreeMap<String, Time>,
    /// Whose event, by UID, the node's condition tells about, as far as this process knows.
    condition_of: Option<String>,
    notices: VecDeque<ClaimNotice>,
}

/// An event that is worked at: exactly one action of it is under way.
#[derive(Debug)]
struct CurrentEvent {
    uid: String,
    snapshot: EventSnapshot,
    action: ClaimAction,
    /// The action was handed out.
    in_flight: bool,
    /// Something has changed since it was looked at.
    woken: bool,
}

/// An event that is left alone for a while.
#[derive(Clone, Debug)]
struct Backoff {
    until: Time,
    /// How long the next failure makes it backoff.
    pause: Duration,
    /// Ends early when something changes.
    ends_on_change: bool,
    /// Since when the API server has refused (401, 403) nothing but the last write.
    forbidden_since: Option<Time>,
    why: String,
}

impl ClaimMachine {
    pub(in crate::slm) fn new(driver: &str, node: &str) -> Self {
        Self {
            rules: ClaimRules {
                driver: driver.to_owned(),
                node: node.to_owned(),
            },
            forbidden_timeout: Settings::FORBIDDEN_TIMEOUT,
            claims_events: false,
            listed: false,
            events: BTreeMap::new(),
            backoffs: BTreeMap::new(),
            current: None,
            retention: Duration::ZERO,
            finished: BTreeMap::new(),
            condition_of: None,
            notices: VecDeque::new(),
        }
    }

    /// The same, but that a finished event is kept for so long before it is deleted, and the newest ten at most. A new
    /// process starts counting again.
    pub(in crate::slm) fn with_retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// The same with another time for which the API server may refuse to write the condition.
    pub(in crate::slm) fn with_forbidden_timeout(self, forbidden_timeout: Duration) -> Self {
        Self {
            forbidden_timeout,
            ..self
        }
    }

    /// It is our part to claim, or not any more: then what is under way is not followed up.
    pub(in crate::slm) fn handle_claiming(&mut self, claims_events: bool) {
        self.claims_events = claims_events;
        self.current = None;
        self.backoffs.clear();
        self.condition_of = None;
    }

    /// The watch of events tells something.
    pub(in crate::slm) fn handle_change(&mut self, change: LifecycleChange) {
        match change {
            LifecycleChange::Applied(event) => {
                let uid = event.uid.clone();
                self.events.insert(uid.clone(), event);
                self.wake(&uid);
            }
            LifecycleChange::Gone { uid } => self.forget(&uid),
            LifecycleChange::Listed(events) => {
                self.events = events
                    .into_iter()
                    .map(|event| (event.uid.clone(), event))
                    .collect();
                let events = &self.events;
                self.backoffs.retain(|uid, _| events.contains_key(uid));
                self.listed = true;
                self.wake_all();
            }
        }
    }

    /// The driver is at something else than before: its next answer may be another one.
    pub(in crate::slm) fn wake_all(&mut self) {
        let uids: Vec<_> = self.events.keys().cloned().collect();
        for uid in uids {
            self.wake(&uid);
        }
    }

    fn wake(&mut self, uid: &str) {
        if let Some(backoff) = self.backoffs.get_mut(uid)
            && backoff.ends_on_change
        {
            backoff.until = Time::default();
        }
        if let Some(current) = self.current.as_mut().filter(|current| current.uid == uid) {
            current.woken = true;
        }
    }

    fn forget(&mut self, uid: &str) {
        self.events.remove(uid);
        self.backoffs.remove(uid);
    }

    /// What is to be done now; what came of it is told by [`Self::handle_done`] before the next one is asked for.
    pub(in crate::slm) fn poll_action(&mut self, now: Time) -> Option<ClaimAction> {
        if !self.claims_events || !self.listed {
            return None;
        }
        self.note_finished(now);
        if self.current.is_none() {
            let event = self.choose(now)?;
            self.current = Some(CurrentEvent {
                uid: event.uid.clone(),
                snapshot: EventSnapshot::default(),
                action: ClaimAction::Read(event.name.clone()),
                in_flight: false,
                woken: false,
            });
        }
        let current = self.current.as_mut().filter(|current| !current.in_flight)?;
        current.in_flight = true;
        Some(current.action.clone())
    }

    /// When to ask for an action although nothing has changed.
    pub(in crate::slm) fn poll_timeout(&self, now: Time) -> Option<Time> {
        if !self.claims_events || !self.listed || self.current.is_some() {
            return None;
        }
        let due = self.candidates(now).into_iter().map(|event| self.due(event));
        let abandoned = self
            .claimed()
            .filter_map(|event| Some(event.sla? + ABANDONED_AFTER));
        due.chain(abandoned.filter(|until| *until > now)).min()
    }

    pub(in crate::slm) fn poll_notice(&mut self) -> Option<ClaimNotice> {
        self.notices.pop_front()
    }

    fn is_own(&self, event: &LifecycleEvent) -> bool {
        event.driver.as_ref() == Some(&self.rules.driver)
    }

    fn claimed(&self) -> impl Iterator<Item = &LifecycleEvent> {
        self.events
            .values()
            .filter(|event| event.claim == ClaimStatus::Claimed)
    }

    fn choose(&self, now: Time) -> Option<&LifecycleEvent> {
        let candidates = self.candidates(now);
        candidates.into_iter().find(|event| self.due(event) <= now)
    }

    /// What may be worked at, the first one first. A claimed event holds up everything else on the node, because
    /// there is only one condition to tell of it.
    fn candidates(&self, now: Time) -> Vec<&LifecycleEvent> {
        let age = |event: &&LifecycleEvent| (event.created, event.name.clone(), event.uid.clone());
        if let Some(ours) = self.claimed().filter(|event| self.is_own(event)).min_by_key(age) {
            return vec![ours];
        }
        let over = |sla: Time| now >= sla + ABANDONED_AFTER;
        let held = self.claimed().any(|event| !event.sla.is_some_and(over));
        let pending = |event: &&LifecycleEvent| event.claim == ClaimStatus::Pending && !held;
        let leftover = |event: &&LifecycleEvent| event.claim.is_terminal() && self.is_own(event);
        let mut candidates: Vec<_> = self.events.values().filter(pending).collect();
        candidates.sort_by_key(age);
        let mut leftovers: Vec<_> = self.events.values().filter(leftover).collect();
        leftovers.sort_by_key(age);
        candidates.append(&mut leftovers);
        candidates
    }

    fn note_finished(&mut self, now: Time) {
        let events = &self.events;
        self.finished.retain(|uid, _| events.contains_key(uid));
        let finished = events.values().filter(|event| event.claim.is_terminal());
        for event in finished {
            self.finished.entry(event.uid.clone()).or_insert(now);
        }
    }

    /// Until when a finished event stays: the newest of ours for a time, all others not at all.
    fn retained_until(&self, event: &LifecycleEvent) -> Option<Time> {
        let is_retained = |event: &LifecycleEvent| {
            event.claim.is_terminal()
                && !event.deleting
                && self.is_own(event)
                && self.retention > Duration::ZERO
        };
        let age = |event: &LifecycleEvent| {
            let finished = self.finished.get(&event.uid).copied();
            (finished, event.created, event.uid.clone())
        };
        let rank = age(event);
        let since = rank.0.filter(|_| is_retained(event))?;
        let newer = self
            .events
            .values()
            .filter(|other| is_retained(other) && age(other) > rank);
        (newer.count() < MAX_RETAINED).then(|| since + self.retention)
    }

    /// When the event is to be looked at. A deadline is not slept over.
    fn due(&self, event: &LifecycleEvent) -> Time {
        let due = self.backoff_until(event);
        self.retained_until(event).map_or(due, |kept| kept.max(due))
    }

    fn backoff_until(&self, event: &LifecycleEvent) -> Time {
        match self.backoffs.get(&event.uid) {
            None => Time::default(),
            Some(backoff) if !backoff.ends_on_change => backoff.until,
            Some(backoff) if event.claim == ClaimStatus::Claimed => {
                event.sla.map_or(backoff.until, |sla| sla.min(backoff.until))
            }
            Some(backoff) => backoff.until,
        }
    }
}

mod results;

#[cfg(test)]
mod tests;
