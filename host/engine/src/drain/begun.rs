//! What a drain has begun and since when, across its processes: a new one goes on with it and begins none of it anew.

use super::Drain;
use super::wave_run::WaveRun;
use crate::{Begun, Notice, Phase, Time};

impl Drain {
    /// What to save now. The write that cordons the node is made before the cordon is seen.
    pub(super) fn begun(&self, own_cordon: bool) -> Begun {
        let cordon = self.newcomers.cordoned_since();
        let waves = self.plan_state.waves().iter().enumerate();
        let waves = waves.filter(|(_, run)| run.has_begun() && !run.left().is_empty());
        let late = self.plan_state.waves().iter().flat_map(WaveRun::late);
        Begun {
            cordon: cordon.or_else(|| own_cordon.then_some(self.now)),
            evictions: self.forcing.evicts_since(),
            waves: waves
                .map(|(place, run)| (run.wave().name.clone(), self.overdue_at(place)))
                .collect(),
            late: late.cloned().collect(),
            // Until the drain is planned again, the plan is the one of the earlier process.
            planners: match &self.restored_begun {
                Some(before) => before.planners.clone(),
                None => self.plan_state.planners(),
            },
        }
    }

    /// Goes on with what an earlier process had begun. Clocks may have been set since.
    pub(super) fn restore_begun(&mut self, begun: Begun, phase: Phase) {
        let past = |since: Time| since.min(self.now);
        let had_evicted = (!phase.is_before_evictions()).then_some(self.started);
        let cordon = begun.cordon.map(past);
        let evictions = begun.evictions.or(had_evicted).map(past);
        self.newcomers.restore_cordon(cordon);
        self.forcing.restore_evictions(evictions);
        self.restored_begun = Some(begun);
    }

    /// The plan is agreed. The waves of an earlier process go on: their hooks have finished for all but late pods.
    pub(super) fn resume_waves(&mut self) {
        let Some(begun) = self.restored_begun.take() else {
            return;
        };
        for run in self.plan_state.waves_mut() {
            if let Some(until) = begun.waves.get(&run.wave().name) {
                run.resume(*until, &begun.late, self.now);
            }
        }
    }

    /// Reports waves that an earlier process had begun, before anything else happens to them.
    pub(super) fn report_resumed_waves(&mut self) {
        for place in 0..self.plan_state.waves().len() {
            let wave = self.plan_state.wave_mut(place);
            if wave.is_some_and(WaveRun::take_unreported) {
                self.report_wave(place);
            }
        }
    }

    /// Reports that the wave has begun.
    pub(super) fn report_wave(&mut self, place: usize) {
        let waves = self.plan_state.waves();
        let Some(run) = waves.get(place) else {
            return;
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.outbox.notify(Notice::WaveStarted {
            name: run.wave().name.clone(),
            number: count(place + 1),
            of: count(waves.len()),
            pods: count(run.left().len()),
        });
    }
}
