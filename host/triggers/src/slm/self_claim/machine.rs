//! Chooses the event of this node to process, and when: one at a time, claimed ones first, then the oldest. It must not
//! read a clock or do I/O: it returns actions and receives their results.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use scupper_api::ClaimStatus;
use scupper_engine::{Settings, Time};

use super::api::{ClaimError, EventSnapshot};
use super::rules::{ClaimAction, ClaimRules};
use crate::DriverState;
use crate::slm::call::Reply;
use crate::slm::{LifecycleChange, LifecycleEvent, VersionedEvent};

/// Interval at which an unchanged event is read again, as a kubelet does.
const RECHECK_AFTER: Duration = Duration::from_secs(10);
/// The same interval for events of other drivers, longer: their transition may be reassigned to this driver.
const RECHECK_OTHERS_AFTER: Duration = Duration::from_secs(60);
/// The pause after the first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// Another driver's event no longer delays ours once its deadline passed this long ago.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// Maximum number of finished events kept per node, whatever the retention time.
const MAX_RETAINED: usize = 10;

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum ActionResult {
    /// The event was read.
    Read(Result<EventSnapshot, ClaimError>),
    /// The event was updated.
    Written(Result<VersionedEvent, ClaimError>),
    /// The event was deleted.
    Deleted(Result<(), ClaimError>),
    /// The condition was written.
    Set(Result<(), ClaimError>),
    /// The trigger has answered; `None` if it has closed.
    Answered(Option<Reply>),
}

/// A notice for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum ClaimNotice {
    /// An event has a new status.
    Became { event: String, claim: ClaimStatus },
    /// An event failed.
    Failed { event: String, why: String },
    /// An event is postponed.
    Postponed { event: String, why: String },
    /// An event is not claimed before this has ended.
    Waiting { event: String, what: String },
}

/// Chooses the event to process, and when.
#[derive(Debug)]
pub(in crate::slm) struct ClaimMachine {
    rules: ClaimRules,
    /// Time for which the API server may refuse to write the condition before the event fails.
    forbidden_timeout: Duration,
    /// This driver claims events.
    claims_events: bool,
    /// What the driver does, if it is busy. A claim would start the event's time limit, so events wait unclaimed for the
    /// end of another drain.
    busy_with: Option<String>,
    /// Pending events that were reported as waiting for it.
    waiting: BTreeSet<String>,
    /// The watch has delivered its first full list.
    listed: bool,
    events: BTreeMap<String, LifecycleEvent>,
    backoffs: BTreeMap<String, Backoff>,
    current: Option<CurrentEvent>,
    /// Time for which a finished event is kept.
    retention: Duration,
    /// When this process first saw each event as finished.
    finished: BTreeMap<String, Time>,
    /// The UID of the event that the node's condition reports, as far as this process knows.
    condition_of: Option<String>,
    notices: VecDeque<ClaimNotice>,
}

/// The event in process: exactly one action on it is under way.
#[derive(Debug)]
struct CurrentEvent {
    uid: String,
    snapshot: EventSnapshot,
    action: ClaimAction,
    /// The action was handed out.
    in_flight: bool,
    /// Something has changed since the last read.
    woken: bool,
}

/// The backoff of an event after failures.
#[derive(Clone, Debug)]
struct Backoff {
    until: Time,
    /// The pause after the next failure.
    pause: Duration,
    /// A change ends the pause early.
    ends_on_change: bool,
    /// The time since which the API server has refused (401, 403) the last write.
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
            busy_with: None,
            waiting: BTreeSet::new(),
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

    /// Keeps a finished event for `retention` before deleting it, and at most the newest ten. A new process starts
    /// counting again.
    pub(in crate::slm) fn with_retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// Sets the time for which the API server may refuse to write the condition.
    pub(in crate::slm) fn with_forbidden_timeout(self, forbidden_timeout: Duration) -> Self {
        Self {
            forbidden_timeout,
            ..self
        }
    }

    /// Sets whether this driver claims events. If it stops claiming, actions under way are not followed up.
    pub(in crate::slm) fn handle_claiming(&mut self, claims_events: bool) {
        self.claims_events = claims_events;
        self.current = None;
        self.backoffs.clear();
        self.condition_of = None;
    }

    /// Handles a change from the watch of events.
    pub(in crate::slm) fn handle_change(&mut self, change: LifecycleChange) {
        match change {
            LifecycleChange::Applied(event) => {
                let uid = event.uid.clone();
                self.events.insert(uid.clone(), event);
                self.wake(&uid);
            }
            LifecycleChange::Deleted(uid) => self.forget(&uid),
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

    /// Handles a change of the driver's activity: its next answer may differ.
    pub(in crate::slm) fn handle_driver_state(&mut self, driver_state: &DriverState) {
        self.busy_with = match driver_state {
            DriverState::Running { what, .. } => Some(what.clone()),
            DriverState::Idle => None,
        };
        self.waiting.clear();
        self.wake_all();
    }

    /// Handles a change of a transition: the events that name it may have waited for it.
    pub(in crate::slm) fn wake_for_transition(&mut self, name: &str) {
        self.wake_each(|event| event.transition == name);
    }

    fn wake_all(&mut self) {
        self.wake_each(|_| true);
    }

    fn wake_each(&mut self, which: impl Fn(&LifecycleEvent) -> bool) {
        let events = self.events.values().filter(|event| which(event));
        let uids: Vec<_> = events.map(|event| event.uid.clone()).collect();
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

    /// Returns the next action; its result must go to [`Self::handle_done`] before the next call.
    pub(in crate::slm) fn poll_action(&mut self, now: Time) -> Option<ClaimAction> {
        if !self.claims_events || !self.listed {
            return None;
        }
        self.note_finished(now);
        self.note_waiting();
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

    /// Returns when to ask for an action although nothing has changed.
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

    /// Returns the events to process, in order. A claimed event delays everything else on the node, because there is
    /// only one condition to report it.
    fn candidates(&self, now: Time) -> Vec<&LifecycleEvent> {
        let age = |event: &&LifecycleEvent| (event.created, event.name.clone(), event.uid.clone());
        if let Some(ours) = self.claimed().filter(|event| self.is_own(event)).min_by_key(age) {
            return vec![ours];
        }
        let over = |sla: Time| now >= sla + ABANDONED_AFTER;
        let held = self.busy_with.is_some() || self.claimed().any(|event| !event.sla.is_some_and(over));
        let pending = |event: &&LifecycleEvent| event.claim == ClaimStatus::Pending && !held;
        let leftover = |event: &&LifecycleEvent| event.claim.is_terminal() && self.is_own(event);
        let mut candidates: Vec<_> = self.events.values().filter(pending).collect();
        candidates.sort_by_key(age);
        let mut leftovers: Vec<_> = self.events.values().filter(leftover).collect();
        leftovers.sort_by_key(age);
        candidates.append(&mut leftovers);
        candidates
    }

    /// Reports the events that wait until the driver has ended what it does. One that is claimed is what it does.
    fn note_waiting(&mut self) {
        let Some(what) = &self.busy_with else { return };
        if self.claimed().any(|event| self.is_own(event)) {
            return;
        }
        let pending = self
            .events
            .values()
            .filter(|event| event.claim == ClaimStatus::Pending);
        for event in pending {
            if self.waiting.insert(event.uid.clone()) {
                self.notices.push_back(ClaimNotice::Waiting {
                    event: event.name.clone(),
                    what: what.clone(),
                });
            }
        }
    }

    fn note_finished(&mut self, now: Time) {
        let events = &self.events;
        self.finished.retain(|uid, _| events.contains_key(uid));
        let finished = events.values().filter(|event| event.claim.is_terminal());
        for event in finished {
            self.finished.entry(event.uid.clone()).or_insert(now);
        }
    }

    /// Returns the time until which a finished event is kept: the newest of ours for a while, all others not at all.
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

    /// Returns when to read the event next; never later than its deadline.
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
