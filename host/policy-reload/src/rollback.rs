//! Rollback: a revision that fails repeatedly, or that an operator rejects, is replaced by the previous one.

use std::sync::Arc;

use scupper_engine::HumanDuration;

use super::catalogue::{Generation, Member};
use super::notice::{ReloadNotice, short};
use super::policy_set::{PolicySet, random};
use super::revision::Revision;
use super::status::{SlotProblem, SlotState};

impl PolicySet {
    /// A call of a revision failed.
    pub(super) fn fault(&mut self, name: &str, revision: &Revision, what: &str) {
        let now = self.clock.now();
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        if entry.slot.fault(now, revision, &self.rules) {
            let (faults, window) = (self.rules.faults, HumanDuration(self.rules.window));
            let reason = format!("{faults} calls failed within {window}, the last in {what}");
            // A previous revision exists, or the slot would not have asked for it.
            let _done = self.roll_back(name, &reason, false).is_ok();
        }
    }

    /// Puts the previous revision in the place of the current one.
    pub(super) fn roll_back(&mut self, name: &str, reason: &str, by_hand: bool) -> Result<String, String> {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let Some(current) = active.member(name) else {
            return Err(format!("no policy `{name}` is active"));
        };
        let entry = self.entries.entry(name.to_owned()).or_default();
        let nothing = || {
            format!(
                "policy `{name}` cannot be rolled back: no revision before {} is kept",
                short(&current.revision.digest)
            )
        };
        let Some(policy) = entry.previous.take() else {
            return Err(nothing());
        };
        let rolled = entry
            .slot
            .roll_back(now, (reason, by_hand), &self.rules, random());
        let (from, to) = rolled.ok_or_else(nothing)?;
        entry.state = Some(SlotState::RolledBack);
        entry.ready = None;
        entry.problem = Some(SlotProblem {
            digest: Some(from.digest.clone()),
            reason: reason.to_owned(),
            at: now,
        });
        let number = active.number + 1;
        self.catalogue.withdraw(name, &from);
        let back = Arc::new(Member::new(policy, to.clone(), number, now));
        let members = active.members.iter().map(|member| match member.name() == name {
            true => Arc::clone(&back),
            false => Arc::clone(member),
        });
        self.catalogue.swap(Generation {
            number,
            members: members.collect(),
        });
        self.publish();
        let is_shadow = back.mode().is_shadow();
        let done = format!(
            "{name}: {} is {} again, {} stays away",
            short(&to.digest),
            if is_shadow { "a shadow" } else { "active" },
            short(&from.digest)
        );
        self.notify(ReloadNotice::RolledBack {
            name: name.to_owned(),
            from: from.digest,
            to: to.digest,
            generation: number,
            is_shadow,
            reason: reason.to_owned(),
        });
        Ok(done)
    }
}
