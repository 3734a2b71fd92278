//! Checks the state of a drain after each event, and its end, against the invariants.

use std::collections::BTreeMap;
use std::mem::discriminant;

use scupper_engine::{
    CommandId, Drain, HookPhase, Intent, Outcome, PodRef, Reason, Request, Task, Uid, Verdict,
};

use crate::cluster::{Cluster, Owner};
use crate::coverage::Coverage;
use crate::invariants::Invariants;
use crate::scenario::Mood;
use crate::violation::{Checked, broken};

/// The limit between an outcome and the end: cancel hooks, and the last write of the node.
const WINDING_UP: u64 = 31_000;
/// The same without a deadline: the last write may be retried for longer.
const PATIENT: u64 = 320_000;

impl Invariants {
    /// The engine has processed an event.
    pub(crate) fn check_end(
        &mut self,
        now: u64,
        drain: &Drain,
        request: &Request,
        truth: &Cluster,
        outstanding: &BTreeMap<CommandId, Task>,
        coverage: &mut Coverage,
    ) -> Checked {
        self.volumes
            .check(self.process_now, drain, self.knowledge.is_cordoned())?;
        if self.decided.is_none()
            && let Some(outcome) = drain.outcome()
        {
            self.decided = Some(now);
            // A node that an earlier process had seen drained is not checked again for an order that comes too late.
            let stands = self.ended_well && *outcome == Outcome::Drained && self.knowledge.is_over(now);
            if !stands {
                self.gives_up_rightly(outcome, request)?;
                self.decision(outcome, request, truth)?;
            }
        }
        self.ends_in_time(now, drain)?;
        if self.decided.is_none() {
            self.gives_up_in_time(request)?;
        }
        if !self.finished {
            self.is_forced_when_due(now, drain, request, outstanding)?;
            self.has_saved_its_evictions(drain, request, outstanding)?;
            let waiting = drain.waiting();
            self.goes_on(drain, &waiting)?;
            self.surges_are_chosen(now, drain, &waiting, outstanding)?;
            self.waiting(&waiting, request, coverage)?;
            self.no_silence(drain, outstanding)?;
        }
        Ok(())
    }

    /// Invariants 3 and 6: the outcome must be true.
    fn decision(&self, outcome: &Outcome, request: &Request, truth: &Cluster) -> Checked {
        match outcome {
            Outcome::Drained => {
                if !self.ended_well {
                    self.volumes.drained(request, truth)?;
                    self.volumes.is_listed_since(self.knowledge.fresh_list)?;
                }
                self.drained(truth)
            }
            outcome
                if self
                    .cancelled
                    .as_ref()
                    .is_some_and(|said| !is_cancelled(outcome, said)) =>
            {
                broken(
                    8,
                    format!("it was cancelled before a crash, and ends as {}", outcome.name()),
                )
            }
            Outcome::Cancelled { .. } if self.cancelled.is_some() => Ok(()),
            Outcome::Cancelled { .. } | Outcome::Lost { .. }
                if self.knowledge.stopped.is_none() && !self.knowledge.node_told_gone && !self.rolls_back =>
            {
                broken(6, format!("it ends as {} without an order", outcome.name()))
            }
            Outcome::Uncordoned { cordon_kept } if !cordon_kept => {
                match truth.node.as_ref().map(|node| node.owner) {
                    Some(Owner::Ours) => broken(5, "says that our cordon is lifted, and it is not"),
                    _ => Ok(()),
                }
            }
            Outcome::DeadlineExceeded { .. } if self.knowledge.deadline.is_none() => {
                broken(6, "it ends by a deadline that it does not have")
            }
            _ if request.intent == Intent::Uncordon && matches!(outcome, Outcome::Blocked { .. }) => {
                broken(6, "an uncordon cannot be blocked")
            }
            _ => Ok(()),
        }
    }

    /// Invariant 3.
    fn drained(&self, truth: &Cluster) -> Checked {
        let Some(listed) = self.knowledge.fresh_list else {
            return broken(3, "drained without a fresh list");
        };
        let leaves = |uid: &Uid| !matches!(self.plans.verdicts.get(uid), Some(Verdict::Keep));
        for pod in truth.on_node().map(|truth| &truth.pod) {
            let uid = &pod.id.uid;
            let known = pod.created.as_millis() < listed || self.knowledge.there.contains_key(uid);
            if known && leaves(uid) {
                let said = self.plans.verdicts.get(uid);
                return broken(
                    3,
                    format!("drained, and pod {uid} is there; the plan says {said:?}"),
                );
            }
        }
        let late = truth.gone.iter().find(|(uid, (pod, gone))| {
            *gone > listed
                && pod.node == crate::cluster::NODE
                && self
                    .plans
                    .verdicts
                    .get(*uid)
                    .is_some_and(|verdict| verdict.leaves())
        });
        match late {
            Some((uid, _)) => broken(
                3,
                format!("drained, and the last list was taken before {uid} was gone"),
            ),
            None => Ok(()),
        }
    }

    /// Invariant 6.
    fn ends_in_time(&mut self, now: u64, drain: &Drain) -> Checked {
        if self.decided.is_none() && self.knowledge.is_over(now) {
            let stopped = self.knowledge.stopped;
            return broken(
                6,
                format!("the drain is over (stopped at {stopped:?}) without an outcome"),
            );
        }
        if self.decided.is_some() && drain.outcome().is_none() {
            return broken(6, "an outcome was withdrawn");
        }
        let Some(decided) = self.decided.filter(|_| !self.finished) else {
            return Ok(());
        };
        let deadline = self.knowledge.last_deadline.unwrap_or(u64::MAX);
        let deadline = deadline.min(decided + PATIENT);
        let latest = deadline
            .max(decided + WINDING_UP)
            .max(self.last_look + WINDING_UP);
        if now > latest + 3_000 {
            return broken(6, format!("decided at {decided} and not finished"));
        }
        Ok(())
    }

    fn waiting(
        &mut self,
        waiting: &[(PodRef, Reason)],
        request: &Request,
        coverage: &mut Coverage,
    ) -> Checked {
        let mut named: Vec<&Uid> = waiting.iter().map(|(pod, _)| &pod.uid).collect();
        named.sort_unstable();
        if let Some((uid, _)) = named
            .iter()
            .zip(named.iter().skip(1))
            .find(|(one, next)| one == next)
        {
            return broken(6, format!("pod {uid} waits for two reasons"));
        }
        for (pod, reason) in waiting {
            if self.knowledge.buried.contains(&pod.uid) {
                return broken(
                    6,
                    format!("pod {} waits ({}) although it is gone", pod.uid, reason.name()),
                );
            }
            let kind = discriminant(reason);
            if !self.reasons.contains(&kind) {
                self.reasons.push(kind);
                coverage.count("reason", reason.name());
            }
        }
        if request.intent == Intent::Drain && self.knowledge.heard_pods {
            let forgotten = self
                .knowledge
                .there
                .keys()
                .find(|uid| named.binary_search(uid).is_err());
            if let Some(uid) = forgotten {
                return broken(6, format!("pod {uid} is there and has no reason"));
            }
        }
        Ok(())
    }

    /// Invariant 7: hooks are called again in time. Checked before anything happens at this time.
    pub(crate) fn punctual(&self, now: u64) -> Checked {
        if self.knowledge.paused.is_some() || self.decided.is_some() || !self.knowledge.is_complete() {
            return Ok(());
        }
        match self.hooks.overdue(now) {
            Some(hook) => broken(7, format!("{hook:?} is not called again")),
            None => Ok(()),
        }
    }

    /// Invariant 7: a waiting drain has requested something or set a timer.
    fn no_silence(&self, drain: &Drain, outstanding: &BTreeMap<CommandId, Task>) -> Checked {
        if self.knowledge.paused.is_some() || !self.knowledge.is_complete() {
            return Ok(());
        }
        if !outstanding.is_empty() || drain.poll_timeout().is_some_and(|timer| timer > self.process_now) {
            return Ok(());
        }
        if self.decided.is_some() {
            return broken(7, "it is decided, not finished, and waits for nothing");
        }
        let stuck = drain
            .waiting()
            .into_iter()
            .find(|(_, reason)| needs_a_timer(reason));
        match stuck.filter(|_| self.knowledge.is_cordoned()) {
            Some((pod, reason)) => broken(
                7,
                format!("{} waits ({}) and no timer is set", pod.uid, reason.name()),
            ),
            None => Ok(()),
        }
    }

    /// The drive has ended.
    pub(crate) fn end(
        &self,
        drain: &Drain,
        request: &Request,
        truth: &Cluster,
        circumstances: Circumstances,
    ) -> Checked {
        let outcome = drain.outcome();
        let Circumstances {
            mood,
            requests,
            writes_work,
            mark_stands,
        } = circumstances;
        if mood != Mood::Wild && !outcome.is_some_and(Outcome::is_success) {
            return broken(
                8,
                format!("nothing stood in the way, and yet it ended: {outcome:?}"),
            );
        }
        if let (Some(requests), Intent::Drain) = (requests, request.intent) {
            let leaving = self
                .plans
                .verdicts
                .values()
                .filter(|verdict| verdict.leaves())
                .count();
            let most = u32::try_from(leaving).unwrap_or(u32::MAX).saturating_add(3);
            if requests > most {
                return broken(6, format!("{requests} requests for {leaving} pods"));
            }
        }
        let node = truth.node.as_ref();
        let ours = node.is_some_and(|node| {
            node.owner == Owner::Ours && node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon)
        });
        let mark = node.and_then(|node| node.checkpoint.as_ref());
        let is_own = mark.is_some_and(|mark| mark.id == request.id);
        match outcome {
            Some(Outcome::Uncordoned { .. }) if ours && mark_stands => {
                broken(5, "an uncordon leaves our cordon")
            }
            // One that has not got as far as its first write leaves the mark of the drain before it.
            Some(Outcome::Cancelled { .. })
                if ours
                    && is_own
                    && mark_stands
                    && writes_work
                    && !self.ended_well
                    && !self.inherits
                    && request.intent == Intent::Drain =>
            {
                broken(5, "a cancelled drain leaves our cordon")
            }
            // The command lifts that of a drain that has ended before it saw the node.
            _ if ours
                && mark_stands
                && writes_work
                && self.knowledge.heard_node
                && mark.is_some_and(|mark| mark.ahead) =>
            {
                broken(5, "the cordon that was made ahead of the drain is nobody's")
            }
            _ => Ok(()),
        }
    }
}

/// The kind of world in which a drive ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) mood: Mood,
    /// The number of requests to the API server, where they are counted.
    pub(crate) requests: Option<u32>,
    /// No client has removed our mark.
    pub(crate) mark_stands: bool,
    /// Writes and watches of the node work in time, and the cordon does not belong to an earlier drain.
    pub(crate) writes_work: bool,
}

fn is_cancelled(outcome: &Outcome, said: &str) -> bool {
    matches!(outcome, Outcome::Cancelled { reason } if reason == said)
}

/// Nothing in the world ends this wait by itself.
const fn needs_a_timer(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NotPlanned
            | Reason::PlannerFailed { .. }
            | Reason::HookRunning {
                phase: HookPhase::BeforeCordon | HookPhase::BeforeDrain | HookPhase::OnCancel,
                ..
            }
            | Reason::EvictionRequested
            | Reason::BudgetExhausted { .. }
            | Reason::BudgetNotObserved { .. }
            | Reason::MoreThanOneBudget { .. }
            | Reason::Throttled { .. }
            | Reason::EvictionRefused { .. }
            | Reason::Forbidden { .. }
            | Reason::Unreachable { .. }
            | Reason::UidDisproved
    )
}
