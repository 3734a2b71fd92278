//! When the status of a request is written: at once if a state changes, seldom if only a text does, with back-off after
//! a failure, and never two writes of one request at a time.

use std::time::Duration;

use scupper_api::{DrainRequestRef, RequestCondition};
use scupper_engine::{Condition, Time};
use thiserror::Error;

use super::super::conditions::{Difference, RequestStage};
use super::{RequestState, TrackedRequest};

/// The shortest pause between writes that change only a text.
const TEXTS: Duration = Duration::from_secs(10);
/// A request that is drained for within this time is not reported as waiting.
const PATIENCE: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Conditions to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct ConditionWrite {
    pub(in super::super) reference: DrainRequestRef,
    pub(in super::super) conditions: Vec<RequestCondition>,
}

/// Why conditions of a request were not written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnwrittenConditions {
    /// The API server refuses it: a right is missing, or an admission policy forbids it.
    #[error("{0}")]
    Refused(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// The writes of one request.
#[derive(Debug, Default)]
pub(super) struct WriteSlot {
    in_flight: bool,
    failures: u32,
    not_before: Time,
    last: Time,
}

impl WriteSlot {
    /// A write is under way, or is to be tried again.
    pub(super) const fn is_pending(&self) -> bool {
        self.in_flight || self.failures > 0
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        !self.in_flight && now >= self.not_before
    }

    pub(super) const fn begin(&mut self) {
        self.in_flight = true;
    }

    pub(super) fn failed(&mut self, now: Time) {
        let pause = FIRST_PAUSE
            .saturating_mul(1 << self.failures.min(10))
            .min(LONGEST_PAUSE);
        self.in_flight = false;
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + pause;
    }
}

impl RequestState {
    /// The next write that is due.
    pub(in super::super) fn poll_write(&mut self, now: Time) -> Option<ConditionWrite> {
        if let Some(correction) = self.poll_correction(now) {
            return Some(correction);
        }
        let (uid, conditions) = self.requests.iter().find_map(|(uid, tracked)| {
            let conditions = self.due(tracked, now)?;
            Some((uid.clone(), conditions))
        })?;
        let tracked = self.requests.get_mut(&uid)?;
        tracked.write.begin();
        Some(ConditionWrite {
            reference: tracked.observed.reference.clone(),
            conditions,
        })
    }

    fn due(&self, tracked: &TrackedRequest, now: Time) -> Option<Vec<RequestCondition>> {
        let slot = &tracked.write;
        if !slot.is_due(now) {
            return None;
        }
        let stage = self.stage(tracked)?;
        let is_early = matches!(stage, RequestStage::Waiting(_)) && now < tracked.seen + PATIENCE;
        let wanted = self.names.at(&stage, &tracked.observed);
        let is_due = match Difference::of(&tracked.observed, &wanted) {
            Difference::None => false,
            Difference::Text => now >= slot.last + TEXTS,
            Difference::State => !is_early,
        };
        is_due.then_some(wanted)
    }

    /// Its status does not say yet what it should.
    pub(super) fn has_news(&self, tracked: &TrackedRequest) -> bool {
        let wanted = self
            .stage(tracked)
            .map(|stage| self.names.at(&stage, &tracked.observed));
        wanted.is_some_and(|wanted| Difference::of(&tracked.observed, &wanted) != Difference::None)
    }

    /// A write has ended. The watch may show its result later, or not at all.
    pub(in super::super) fn handle_written(
        &mut self,
        write: &ConditionWrite,
        written: &Result<(), UnwrittenConditions>,
        now: Time,
    ) {
        let Some(tracked) = self.requests.get_mut(&write.reference.uid) else {
            self.handle_last_write(write, written, now);
            return;
        };
        let slot = &mut tracked.write;
        if written.is_err() {
            slot.failed(now);
            return;
        }
        (slot.in_flight, slot.failures, slot.last) = (false, 0, now);
        for written in &write.conditions {
            let status = if written.status { "True" } else { "False" };
            let known = &mut tracked.observed.conditions;
            let old = known.iter().find(|old| old.kind == written.kind);
            let since = old.filter(|old| old.status == status).and_then(|old| old.since);
            known.retain(|old| old.kind != written.kind);
            known.push(Condition {
                kind: written.kind.clone(),
                status: status.to_owned(),
                reason: written.reason.clone(),
                message: written.message.clone(),
                since: since.or(Some(now)),
            });
        }
    }
}
