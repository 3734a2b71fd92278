//! The state of one policy: the active revision, the previous one, the rejected ones, and the decision about a
//! candidate or a fault. Pure: it has no clock and opens nothing.

use std::collections::VecDeque;

use scupper_common::error::chain;
use scupper_engine::Time;
use scupper_policy::LoadFault;

use super::revision::Revision;
use super::rules::{CandidateRate, ReloadRules, backoff};

/// Rejected revisions to remember, so that not every scan tries them again.
const REFUSED: usize = 16;
/// Revisions to remember as rolled back.
const QUARANTINED: usize = 16;

/// The record of one policy's revisions.
#[derive(Debug, Default)]
pub(super) struct PolicyRevisions {
    active: Option<Revision>,
    previous: Option<Revision>,
    refused: VecDeque<Refused>,
    quarantined: VecDeque<Quarantine>,
    pace: CandidateRate,
    faults: VecDeque<Time>,
}

#[derive(Debug)]
struct Refused {
    revision: Revision,
    /// `None`: the revision itself is to blame, so a retry is useless.
    again: Option<Time>,
    refusal: Refusal,
    /// How often it was rejected.
    times: u32,
}

/// Why a revision was rejected, to report it again when it comes a second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The step that failed.
    pub(super) step: &'static str,
    pub(super) reason: String,
}

impl Refusal {
    pub(super) fn of(fault: &LoadFault) -> Self {
        Self {
            step: fault.step(),
            reason: chain(fault),
        }
    }
}

/// A revision that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quarantine {
    pub(super) revision: Revision,
    /// `None`: an operator rolled it back, and it does not return automatically.
    pub(super) until: Option<Time>,
    /// The number of its rollbacks.
    pub(super) times: u32,
    pub(super) reason: String,
}

/// The decision about a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is already active.
    Same,
    /// It was rejected before, and has not changed.
    Refused(Refusal),
    /// It was rolled back.
    Quarantined(Quarantine),
    /// Candidates come too fast.
    TooSoon(Time),
    /// Load it.
    Try,
}

impl PolicyRevisions {
    /// Decides about this revision. `Try` counts as a try.
    pub(super) fn decide(
        &mut self,
        now: Time,
        revision: &Revision,
        rules: &ReloadRules,
        random: u64,
    ) -> Decision {
        if self.active.as_ref() == Some(revision) {
            return Decision::Same;
        }
        if let Some(quarantine) = self.quarantine(now, revision) {
            return Decision::Quarantined(quarantine.clone());
        }
        let refused = self.refused.iter().find(|refused| refused.revision == *revision);
        if let Some(Refused { again, refusal, .. }) = refused {
            match again {
                None => return Decision::Refused(refusal.clone()),
                Some(again) if now < *again => return Decision::TooSoon(*again),
                Some(_) => {}
            }
        }
        match self.pace.admit(now, rules, random) {
            Ok(()) => Decision::Try,
            Err(next) => Decision::TooSoon(next),
        }
    }

    /// The quarantine in which this revision is now.
    pub(super) fn quarantine(&self, now: Time, revision: &Revision) -> Option<&Quarantine> {
        let is_away =
            |known: &&Quarantine| known.revision == *revision && known.until.is_none_or(|until| now < until);
        self.quarantined.iter().find(is_away)
    }

    /// The last candidate has been loaded or rejected.
    pub(super) fn through(&mut self, now: Time) {
        self.pace.through(now);
    }

    /// Revisions that would not be tried now and so need not be read.
    pub(super) fn known(&self, now: Time) -> impl Iterator<Item = &Revision> {
        let refused = self.refused.iter();
        let refused = refused.filter(move |known| known.again.is_none_or(|again| now < again));
        let away = self.quarantined.iter();
        let away = away.filter(move |known| known.until.is_none_or(|until| now < until));
        let bad = refused.map(|known| &known.revision);
        bad.chain(away.map(|known| &known.revision)).chain(&self.active)
    }

    /// How often it was rejected before, and the last reason.
    pub(super) fn refusals(&self, revision: &Revision) -> Option<(u32, &Refusal)> {
        let refused = self.refused.iter().find(|refused| refused.revision == *revision);
        refused.map(|refused| (refused.times, &refused.refusal))
    }

    /// It is rejected. `again`: the time of the retry, if a retry could help.
    pub(super) fn refuse(&mut self, revision: &Revision, again: Option<Time>, refusal: Refusal) {
        let times = self.refusals(revision).map_or(0, |(times, _)| times);
        self.refused.retain(|refused| refused.revision != *revision);
        self.refused.push_back(Refused {
            revision: revision.clone(),
            again,
            refusal,
            times: times.saturating_add(1),
        });
        while self.refused.len() > REFUSED {
            self.refused.pop_front();
        }
    }

    /// It becomes active; the active one becomes the previous one.
    pub(super) fn activate(&mut self, revision: Revision) {
        self.refused.retain(|refused| refused.revision != revision);
        self.faults.clear();
        if self.active.as_ref() != Some(&revision) {
            self.previous = self.active.replace(revision);
        }
    }

    /// A call failed. Returns whether the previous revision must replace this one.
    pub(super) fn fault(&mut self, now: Time, revision: &Revision, rules: &ReloadRules) -> bool {
        if self.active.as_ref() != Some(revision) {
            return false;
        }
        self.faults.retain(|at| now.since(*at) < rules.window);
        self.faults.push_back(now);
        self.faults.len() >= rules.faults && self.previous.is_some()
    }

    /// Makes the previous revision active again and quarantines the active one: for a while, or (`by_hand`) for good.
    /// Returns both, or `None` if there is no previous revision.
    pub(super) fn roll_back(
        &mut self,
        now: Time,
        (reason, by_hand): (&str, bool),
        rules: &ReloadRules,
        random: u64,
    ) -> Option<(Revision, Revision)> {
        let to = self.previous.take()?;
        let from = self.active.replace(to.clone())?;
        self.faults.clear();
        let before = self.quarantined.iter().find(|known| known.revision == from);
        let times = before.map_or(0, |known| known.times);
        let span = backoff(rules.quarantine, rules.longest_quarantine, times, random);
        self.quarantined.retain(|known| known.revision != from);
        self.quarantined.push_back(Quarantine {
            revision: from.clone(),
            until: (!by_hand).then(|| now + span),
            times: times.saturating_add(1),
            reason: reason.to_owned(),
        });
        while self.quarantined.len() > QUARANTINED {
            self.quarantined.pop_front();
        }
        Some((from, to))
    }

    /// No rollback returns to the previous revision.
    pub(super) fn forget_previous(&mut self) {
        self.previous = None;
    }

    pub(super) const fn previous(&self) -> Option<&Revision> {
        self.previous.as_ref()
    }

    pub(super) const fn active(&self) -> Option<&Revision> {
        self.active.as_ref()
    }

    /// Revisions in quarantine, for the next process.
    pub(super) fn quarantined(&self) -> impl Iterator<Item = &Quarantine> {
        self.quarantined.iter()
    }

    /// The rollbacks of an earlier process.
    pub(super) fn restore(&mut self, quarantined: Vec<Quarantine>) {
        self.quarantined = quarantined.into();
    }

    /// The previous revision, if it was found again.
    pub(super) fn restore_previous(&mut self, previous: Revision) {
        self.previous = Some(previous);
    }
}
