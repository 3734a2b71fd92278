//! What is known of one policy's place: which edition is active, which one was before, which ones are not taken, and
//! what is to be done about a candidate or a fault. Pure: it has no clock and opens nothing.

use std::collections::VecDeque;

use scupper_engine::Time;

use super::revision::Edition;
use super::rules::{Pace, ReloadRules, backoff};

/// Editions that were not taken and are remembered, so that they are not tried again at every look.
const REFUSED: usize = 16;
/// Editions that were rolled back and are remembered.
const QUARANTINED: usize = 16;

/// One policy's place.
#[derive(Debug, Default)]
pub(super) struct Slot {
    active: Option<Edition>,
    previous: Option<Edition>,
    refused: VecDeque<Refused>,
    quarantined: VecDeque<Quarantine>,
    pace: Pace,
    faults: VecDeque<Time>,
}

#[derive(Debug)]
struct Refused {
    edition: Edition,
    /// `None`: it is itself to blame, and nothing will change that.
    again: Option<Time>,
}

/// An edition that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quarantine {
    pub(super) edition: Edition,
    /// `None`: somebody did not want it, and it does not come back by itself.
    pub(super) until: Option<Time>,
    /// How often it was rolled back.
    pub(super) times: u32,
}

/// What is to be done about a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is active.
    Same,
    /// It was not taken before, and it is the same still.
    Known,
    /// It was rolled back; it may come back then, if ever.
    Quarantined(Option<Time>),
    /// Candidates come too fast.
    TooSoon(Time),
    /// It is taken through all steps.
    Try,
}

impl Slot {
    /// What is to be done about this edition. `Try` counts as a try.
    pub(super) fn judge(
        &mut self,
        now: Time,
        edition: &Edition,
        rules: &ReloadRules,
        chance: u64,
    ) -> Judgement {
        if self.active.as_ref() == Some(edition) {
            return Judgement::Same;
        }
        let quarantine = self.quarantined.iter().find(|known| known.edition == *edition);
        if let Some(quarantine) = quarantine
            && quarantine.until.is_none_or(|until| now < until)
        {
            return Judgement::Quarantined(quarantine.until);
        }
        let refused = self.refused.iter().find(|refused| refused.edition == *edition);
        if let Some(Refused { again, .. }) = refused {
            match again {
                None => return Judgement::Known,
                Some(again) if now < *again => return Judgement::TooSoon(*again),
                Some(_) => {}
            }
        }
        match self.pace.admit(now, rules, chance) {
            Ok(()) => Judgement::Try,
            Err(next) => Judgement::TooSoon(next),
        }
    }

    /// The candidate that was tried last is through, for better or worse.
    pub(super) fn through(&mut self, now: Time) {
        self.pace.through(now);
    }

    /// Editions that would not be tried now, so that nobody needs to read them.
    pub(super) fn known(&self, now: Time) -> impl Iterator<Item = &Edition> {
        let refused = self.refused.iter();
        let refused = refused.filter(move |known| known.again.is_none_or(|again| now < again));
        let away = self.quarantined.iter();
        let away = away.filter(move |known| known.until.is_none_or(|until| now < until));
        let bad = refused.map(|known| &known.edition);
        bad.chain(away.map(|known| &known.edition)).chain(&self.active)
    }

    /// It was not taken. `again`: when it is tried again, if that could help.
    pub(super) fn refuse(&mut self, edition: &Edition, again: Option<Time>) {
        self.refused.retain(|refused| refused.edition != *edition);
        self.refused.push_back(Refused {
            edition: edition.clone(),
            again,
        });
        while self.refused.len() > REFUSED {
            self.refused.pop_front();
        }
    }

    /// It is active from now on; what was active is the one before.
    pub(super) fn activate(&mut self, edition: Edition) {
        self.refused.retain(|refused| refused.edition != edition);
        self.faults.clear();
        if self.active.as_ref() != Some(&edition) {
            self.previous = self.active.replace(edition);
        }
    }

    /// A call failed. Answers whether the edition has to make place for the one before.
    pub(super) fn fault(&mut self, now: Time, edition: &Edition, rules: &ReloadRules) -> bool {
        if self.active.as_ref() != Some(edition) {
            return false;
        }
        self.faults
            .retain(|at| now.since(*at).as_millis() < rules.window.as_millis());
        self.faults.push_back(now);
        self.faults.len() >= rules.faults && self.previous.is_some()
    }

    /// The edition before is active again, and the one that was stays away: for a while, or (`by_hand`) for good.
    /// Answers both, or nothing when there is none before.
    pub(super) fn roll_back(
        &mut self,
        now: Time,
        by_hand: bool,
        rules: &ReloadRules,
        chance: u64,
    ) -> Option<(Edition, Edition)> {
        let to = self.previous.take()?;
        let from = self.active.replace(to.clone())?;
        self.faults.clear();
        let before = self.quarantined.iter().find(|known| known.edition == from);
        let times = before.map_or(0, |known| known.times);
        let span = backoff(rules.quarantine, rules.longest_quarantine, times, chance);
        self.quarantined.retain(|known| known.edition != from);
        self.quarantined.push_back(Quarantine {
            edition: from.clone(),
            until: (!by_hand).then(|| now + span),
            times: times.saturating_add(1),
        });
        while self.quarantined.len() > QUARANTINED {
            self.quarantined.pop_front();
        }
        Some((from, to))
    }

    pub(super) const fn previous(&self) -> Option<&Edition> {
        self.previous.as_ref()
    }

    pub(super) const fn active(&self) -> Option<&Edition> {
        self.active.as_ref()
    }

    /// Editions that stay away, to be remembered by the next process.
    pub(super) fn quarantined(&self) -> impl Iterator<Item = &Quarantine> {
        self.quarantined.iter()
    }

    /// What a former process remembered to be rolled back.
    pub(super) fn recall(&mut self, quarantined: Vec<Quarantine>) {
        self.quarantined = quarantined.into();
    }

    /// The edition before, when it could be found again.
    pub(super) fn recall_previous(&mut self, previous: Edition) {
        self.previous = Some(previous);
    }
}
