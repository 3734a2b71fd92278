//! Waves: which one is under way, and when the next may begin.

use super::Drain;
use crate::{HookPhase, Notice, Phase, Subject, Time, Uid};

impl Drain {
    /// Makes the pods of the begun waves leave, until none is left.
    pub(super) fn empty_node(&mut self) {
        self.advance_waves();
        self.ask_pods();
        self.list_when_overdue();
        if self.is_node_empty() {
            self.verified = false;
            self.verify_round = self.verify_round.wrapping_add(1);
            self.enter(Phase::Verifying);
        }
    }

    /// Begins waves and ends them, as far as it goes now.
    fn advance_waves(&mut self) {
        for place in 0..self.plan_state.waves.len() {
            if !self.advance_wave(place) {
                return;
            }
        }
    }

    /// Whether the next wave may begin.
    fn advance_wave(&mut self, place: usize) -> bool {
        let left = self.left_in(place);
        let own_pod_waits = self.holds_own_pod_back(place);
        let of = u32::try_from(self.plan_state.waves.len()).unwrap_or(u32::MAX);
        let Some(run) = self.plan_state.waves.get_mut(place) else {
            return false;
        };
        if run.ended || left == 0 {
            run.ended = true;
            return true;
        }
        let name = run.wave.name.clone();
        let Some(started) = run.started else {
            if own_pod_waits
                || !self
                    .gate(HookPhase::BeforeWave, &Subject::Wave(name.clone()))
                    .is_open()
            {
                return false;
            }
            self.begin_wave(place);
            let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
            self.outbox.notify(Notice::WaveStarted {
                name,
                number,
                of,
                pods: left,
            });
            return false;
        };
        let overdue = run
            .wave
            .timeout
            .is_some_and(|timeout| self.now >= started + timeout);
        if overdue {
            run.ended = true;
            self.outbox.notify(Notice::WaveOverdue { name });
        }
        overdue
    }

    fn begin_wave(&mut self, place: usize) {
        self.summary.waves += 1;
        if let Some(run) = self.plan_state.waves.get_mut(place) {
            run.started = Some(self.now);
        }
    }

    /// How many of a wave's pods are still there.
    fn left_in(&self, place: usize) -> u32 {
        let pods = self
            .plan_state
            .waves
            .get(place)
            .map_or(&[][..], |run| &run.wave.pods);
        let left = pods
            .iter()
            .filter(|uid| self.plan_state.target(uid).is_some())
            .count();
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// The wave is that of the driver's own pod, and others are there.
    fn holds_own_pod_back(&self, place: usize) -> bool {
        let pods = self
            .plan_state
            .waves
            .get(place)
            .map_or(&[][..], |run| &run.wave.pods);
        pods.iter().any(|uid| !self.may_be_next(uid))
    }

    fn is_own_pod(&self, uid: &Uid) -> bool {
        self.request
            .settings
            .own_pod
            .as_ref()
            .is_some_and(|own| own.uid == *uid)
    }

    /// The driver's own pod is the last one to go.
    pub(super) fn may_be_next(&self, uid: &Uid) -> bool {
        !self.is_own_pod(uid) || self.is_last(uid)
    }

    /// Every other pod that must be gone is gone, so that the driver's own may follow.
    fn is_last(&self, own: &Uid) -> bool {
        let mut pods = self.cluster.pods().keys();
        pods.all(|uid| uid == own || self.plan_state.stays(uid))
    }

    /// When waves that are under way are overdue.
    pub(super) fn waves_overdue(&self) -> impl Iterator<Item = Time> {
        let running = self.plan_state.waves.iter().filter(|run| !run.ended);
        running.filter_map(|run| Some(run.started? + run.wave.timeout?))
    }
}
