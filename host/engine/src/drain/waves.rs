//! Waves: which one is under way, and when the next may begin.

use super::Drain;
use crate::loosening::hold_of;
use crate::{HookPhase, Notice, Phase, Subject, Time, Uid};

impl Drain {
    /// Makes the pods of the begun waves leave, until none is left.
    pub(super) fn empty_node(&mut self) {
        self.end_surges();
        self.report_resumed_waves();
        self.advance_waves();
        self.call_hooks_again();
        // Evictions take no place of pods that must be gone before the deadline.
        self.force_pods();
        self.ask_pods();
        self.retry_surges();
        self.choose_surges();
        self.list_when_overdue();
        if self.is_node_empty() {
            self.verification.begin();
            self.volumes.begin_again();
            let waits = self.waits_for_volumes();
            self.enter(if waits { Phase::Detaching } else { Phase::Verifying });
        } else {
            self.fail_when_forbidden();
        }
    }

    /// Starts and ends waves as far as possible now.
    fn advance_waves(&mut self) {
        for place in 0..self.plan_state.waves().len() {
            if !self.advance_wave(place) {
                return;
            }
        }
    }

    /// Whether the next wave may begin.
    fn advance_wave(&mut self, place: usize) -> bool {
        let Some(run) = self.plan_state.wave_mut(place) else {
            return false;
        };
        if run.has_ended() || run.left().is_empty() {
            run.end();
            return true;
        }
        if !run.has_begun() && !self.begin_wave(place) {
            return false;
        }
        let is_overdue = self.overdue_at(place).is_some_and(|at| self.now >= at);
        if let Some(run) = self.plan_state.wave_mut(place).filter(|_| is_overdue) {
            run.end();
            let name = run.wave().name.clone();
            self.outbox.notify(Notice::WaveOverdue { name });
        }
        is_overdue
    }

    /// Begins the wave once its hooks have finished. Returns whether it has.
    fn begin_wave(&mut self, place: usize) -> bool {
        let Some(run) = self.plan_state.waves().get(place) else {
            return false;
        };
        let subject = Subject::Wave(run.wave().name.clone());
        if self.holds_own_pod_back(place) || !self.gate(HookPhase::BeforeWave, &subject).is_open() {
            return false;
        }
        if let Some(run) = self.plan_state.wave_mut(place) {
            run.begin(self.now);
        }
        self.report_wave(place);
        if self.overdue_at(place).is_some() {
            // A process that resumes must not give it that time again.
            self.checkpoint_state.change();
        }
        true
    }

    /// When the wave, which has begun, no longer holds the next one up, although pods of it are still there. A limited
    /// one holds no wave up whose name says that it is held itself, for a time that counts from the start of the drain,
    /// beyond that time.
    pub(super) fn overdue_at(&self, place: usize) -> Option<Time> {
        let mut runs = self.plan_state.waves().iter().skip(place);
        let own = runs.next()?.overdue_at()?;
        let held = runs.filter(|run| !run.has_begun() && !run.left().is_empty());
        let held = held.filter_map(|run| Some(self.started + hold_of(&run.wave().name)?));
        held.chain([own]).min()
    }

    fn pods_of_wave(&self, place: usize) -> &[Uid] {
        let run = self.plan_state.waves().get(place);
        run.map_or(&[], |run| &run.wave().pods)
    }

    /// The wave is that of the driver's own pod, and others are there.
    fn holds_own_pod_back(&self, place: usize) -> bool {
        let mut pods = self.pods_of_wave(place).iter();
        pods.any(|uid| !self.may_be_next(uid))
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
        let waves = self.plan_state.waves().iter().enumerate();
        let running = waves.filter(|(_, run)| run.has_begun() && !run.has_ended());
        running.filter_map(|(place, _)| self.overdue_at(place))
    }
}
