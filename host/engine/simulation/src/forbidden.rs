//! Evictions that the API server refuses with 401 or 403.

use std::collections::BTreeMap;

use scupper_engine::{EvictAnswer, Outcome, Request, Uid, Verdict, whole_millis};

use crate::invariants::Invariants;
use crate::violation::{Checked, broken};

/// The pods of which the last removals were refused so, and when the first and the last of these answers came.
#[derive(Debug, Default)]
pub(crate) struct ForbiddenRecord(BTreeMap<Uid, (u64, u64)>);

impl ForbiddenRecord {
    pub(crate) fn answered(&mut self, now: u64, uid: &Uid, answer: &EvictAnswer) {
        if let EvictAnswer::Forbidden { .. } = answer {
            self.0.entry(uid.clone()).or_insert((now, now)).1 = now;
        } else {
            self.0.remove(uid);
        }
    }

    fn lasts(&self, uid: &Uid, request: &Request) -> bool {
        let lasted = self.0.get(uid).map(|(first, last)| last - first);
        lasted.is_some_and(|lasted| lasted >= whole_millis(request.settings.forbidden_timeout))
    }
}

impl Invariants {
    /// Invariant 6: a drain gives up on such pods when it is their turn alone.
    pub(crate) fn gives_up_rightly(&self, outcome: &Outcome, request: &Request) -> Checked {
        if !outcome
            .to_string()
            .starts_with("the API server has refused to remove")
        {
            return Ok(());
        }
        let may_leave = |uid: &&Uid| {
            let waits = |uid| {
                let wave = self.plans.wave_of(uid);
                wave.is_some_and(|wave| !self.plans.begun.contains_key(&wave.name))
            };
            let is_held = self.forbidden.lasts(uid, request) || waits(uid);
            self.must_leave(uid) && (!is_held || self.knowledge.deleting.contains(*uid))
        };
        match self.knowledge.there.keys().find(may_leave) {
            Some(uid) => broken(6, format!("it ends as {outcome} while {uid} may leave")),
            None if request.settings.at_deadline.is_some() && self.knowledge.deadline.is_some() => {
                broken(6, format!("it ends as {outcome} and would have deleted the pod"))
            }
            None => Ok(()),
        }
    }

    /// Invariant 7: it does not wait for such a pod for ever, if that is the last one.
    pub(crate) fn gives_up_in_time(&self, request: &Request) -> Checked {
        if self.knowledge.paused.is_some() || request.settings.at_deadline.is_some() {
            return Ok(());
        }
        let mut left = self.knowledge.there.keys().filter(|uid| self.must_leave(uid));
        let (Some(last), None) = (left.next(), left.next()) else {
            return Ok(());
        };
        let is_news = self.forbidden.0.get(last).is_some_and(|(_, at)| *at == self.now);
        let goes_on = !self.knowledge.is_cordoned() || self.knowledge.deleting.contains(last);
        if is_news && !goes_on && self.forbidden.lasts(last, request) {
            return broken(7, format!("it goes on although it may not evict {last}"));
        }
        Ok(())
    }

    fn must_leave(&self, uid: &Uid) -> bool {
        let verdict = self.plans.verdicts.get(uid);
        verdict.is_none_or(|verdict| !matches!(verdict, Verdict::Keep))
    }
}
