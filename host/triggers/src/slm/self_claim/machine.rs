//! Which event of this node is worked at, and when: one at a time, claimed ones first, then the oldest. It must not
//! read a clock nor do anything: it says what is to be done, and hears what came of it.

use std::collections::{BTreeMap, VecDeque};

use scupper_engine::{Duration, Settings, Time};

use super::api::{ClaimError, Claimable, Sight};
use super::decide::{Action, Own};
use crate::slm::claim::Reply;
use crate::slm::{ClaimStatus, LifecycleChange, LifecycleEvent};

/// An event is looked at again after so long although nothing has changed: a kubelet does so, too.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Events of others are looked at rarely: a transition may be given to us.
const LOOK_AT_OTHERS: Duration = Duration::from_secs(60);
/// After the first failure; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Another driver's event whose deadline passed so long ago does not hold up ours any more.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// The most finished events of a node that are kept, however long they may be.
const MOST_KEPT: usize = 10;

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum Done {
    /// This was seen.
    Looked(Result<Sight, ClaimError>),
    /// The event is like this now.
    Written(Result<Claimable, ClaimError>),
    /// The event is deleted.
    Removed(Result<(), ClaimError>),
    /// The condition is written.
    Set(Result<(), ClaimError>),
    /// The door has answered; `None`: it has closed.
    Answered(Option<Reply>),
}

/// What people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::slm) enum Note {
    /// An event has become this.
    Became { event: String, claim: ClaimStatus },
    /// An event failed, and why.
    Failed { event: String, why: String },
    /// An event is left as it is for now, and why.
    Left { event: String, why: String },
}

/// Which event is worked at, and when.
#[derive(Debug)]
pub(in crate::slm) struct Machine {
    own: Own,
    /// How long the API server may refuse to write the condition before the event fails.
    forbidden_timeout: Duration,
    /// It is our part to claim.
    leads: bool,
    /// The watch has shown everything once.
    listed: bool,
    events: BTreeMap<String, LifecycleEvent>,
    rests: BTreeMap<String, Rest>,
    pass: Option<Pass>,
    /// How long a finished event is kept.
    keep: Duration,
    /// When this process first saw each event finished.
    finished: BTreeMap<String, Time>,
    /// Whose event, by UID, the node's condition tells about, as far as this process knows.
    condition_of: Option<String>,
    notes: VecDeque<Note>,
}

/// An event that is worked at: exactly one action of it is under way.
#[derive(Debug)]
struct Pass {
    uid: String,
    sight: Sight,
    action: Action,
    /// The action was handed out.
    under_way: bool,
    /// Something has changed since it was looked at.
    stirred: bool,
}

/// An event that is left alone for a while.
#[derive(Clone, Debug)]
struct Rest {
    until: Time,
    /// How long the next failure makes it rest.
    pause: Duration,
    /// Ends early when something changes.
    light: bool,
    /// Since when the API server has refused (401, 403) nothing but the last write.
    forbidden_since: Option<Time>,
    why: String,
}

impl Machine {
    pub(in crate::slm) fn new(driver: &str, node: &str) -> Self {
        Self {
            own: Own {
                driver: driver.to_owned(),
                node: node.to_owned(),
            },
            forbidden_timeout: Settings::FORBIDDEN_TIMEOUT,
            leads: false,
            listed: false,
            events: BTreeMap::new(),
            rests: BTreeMap::new(),
            pass: None,
            keep: Duration::ZERO,
            finished: BTreeMap::new(),
            condition_of: None,
            notes: VecDeque::new(),
        }
    }

    /// The same, but that a finished event is kept for so long before it is deleted, and the newest ten at most. A new
    /// process starts counting again.
    pub(in crate::slm) fn keeping(self, keep: Duration) -> Self {
        Self { keep, ..self }
    }

    /// The same with another time for which the API server may refuse to write the condition.
    pub(in crate::slm) fn bearing(self, forbidden_timeout: Duration) -> Self {
        Self {
            forbidden_timeout,
            ..self
        }
    }

    /// It is our part to claim, or not any more: then what is under way is not followed up.
    pub(in crate::slm) fn handle_lead(&mut self, leads: bool) {
        self.leads = leads;
        self.pass = None;
        self.rests.clear();
        self.condition_of = None;
    }

    /// The watch of events tells something.
    pub(in crate::slm) fn handle_change(&mut self, change: LifecycleChange) {
        match change {
            LifecycleChange::Applied(event) => {
                let uid = event.uid.clone();
                self.events.insert(uid.clone(), event);
                self.stir(&uid);
            }
            LifecycleChange::Gone { uid } => self.forget(&uid),
            LifecycleChange::Listed(events) => {
                self.events = events
                    .into_iter()
                    .map(|event| (event.uid.clone(), event))
                    .collect();
                let events = &self.events;
                self.rests.retain(|uid, _| events.contains_key(uid));
                self.listed = true;
                self.stir_all();
            }
        }
    }

    /// The driver is at something else than before: its next answer may be another one.
    pub(in crate::slm) fn stir_all(&mut self) {
        let uids: Vec<_> = self.events.keys().cloned().collect();
        for uid in uids {
            self.stir(&uid);
        }
    }

    fn stir(&mut self, uid: &str) {
        if let Some(rest) = self.rests.get_mut(uid)
            && rest.light
        {
            rest.until = Time::default();
        }
        if let Some(pass) = self.pass.as_mut().filter(|pass| pass.uid == uid) {
            pass.stirred = true;
        }
    }

    fn forget(&mut self, uid: &str) {
        self.events.remove(uid);
        self.rests.remove(uid);
    }

    /// What is to be done now; what came of it is told by [`Self::handle_done`] before the next one is asked for.
    pub(in crate::slm) fn poll_action(&mut self, now: Time) -> Option<Action> {
        if !self.leads || !self.listed {
            return None;
        }
        self.note_finished(now);
        if self.pass.is_none() {
            let event = self.choose(now)?;
            self.pass = Some(Pass {
                uid: event.uid.clone(),
                sight: Sight::default(),
                action: Action::Look(event.name.clone()),
                under_way: false,
                stirred: false,
            });
        }
        let pass = self.pass.as_mut().filter(|pass| !pass.under_way)?;
        pass.under_way = true;
        Some(pass.action.clone())
    }

    /// When to ask for an action although nothing has changed.
    pub(in crate::slm) fn poll_timeout(&self, now: Time) -> Option<Time> {
        if !self.leads || !self.listed || self.pass.is_some() {
            return None;
        }
        let due = self.candidates(now).into_iter().map(|event| self.due(event));
        let abandoned = self
            .claimed()
            .filter_map(|event| Some(event.sla? + ABANDONED_AFTER));
        due.chain(abandoned.filter(|until| *until > now)).min()
    }

    pub(in crate::slm) fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    fn is_own(&self, event: &LifecycleEvent) -> bool {
        event.driver.as_ref() == Some(&self.own.driver)
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
    fn kept_until(&self, event: &LifecycleEvent) -> Option<Time> {
        let is_kept = |event: &LifecycleEvent| {
            event.claim.is_terminal() && !event.deleting && self.is_own(event) && self.keep > Duration::ZERO
        };
        let age = |event: &LifecycleEvent| {
            let finished = self.finished.get(&event.uid).copied();
            (finished, event.created, event.uid.clone())
        };
        let own = age(event);
        let since = own.0.filter(|_| is_kept(event))?;
        let newer = self
            .events
            .values()
            .filter(|other| is_kept(other) && age(other) > own);
        (newer.count() < MOST_KEPT).then(|| since + self.keep)
    }

    /// When the event is to be looked at. A deadline is not slept over.
    fn due(&self, event: &LifecycleEvent) -> Time {
        let due = self.rested(event);
        self.kept_until(event).map_or(due, |kept| kept.max(due))
    }

    fn rested(&self, event: &LifecycleEvent) -> Time {
        match self.rests.get(&event.uid) {
            None => Time::default(),
            Some(rest) if !rest.light => rest.until,
            Some(rest) if event.claim == ClaimStatus::Claimed => {
                event.sla.map_or(rest.until, |sla| sla.min(rest.until))
            }
            Some(rest) => rest.until,
        }
    }
}

mod pass;

#[cfg(test)]
mod tests;
