//! The waves of pods that come during the drain: each gets the wave that the same pod would have had in the plan, with its
//! place in the order, its limits and its hooks.
//!
//! A wave that has begun already, or is over, takes the pod as well. Its hooks run again then, for such pods alone: the
//! others do not wait for that.

use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use super::wave_run::WaveRun;
use crate::{HookPhase, Plan, Subject, Uid, Wave};

impl Drain {
    /// Puts a newcomer into the wave that the planners chose for it. Returns its name.
    pub(super) fn join_wave(&mut self, uid: &Uid, plan: &Plan) -> Option<String> {
        let wave = plan.waves.iter().find(|wave| wave.pods.contains(uid))?;
        let has_hooks = self.has_hooks(HookPhase::BeforeWave);
        let known = self.waves_by_name(&wave.name).next();
        match known {
            Some(place) => {
                if let Some(run) = self.plan_state.wave_mut(place) {
                    run.add(uid.clone(), has_hooks);
                }
            }
            None => {
                let place = self.place_of_wave(&wave.name, plan);
                let wave = Wave {
                    pods: Vec::from([uid.clone()]),
                    ..wave.clone()
                };
                self.plan_state.waves_mut().insert(place, WaveRun::new(wave));
            }
        }
        if self
            .hooks
            .reopen(HookPhase::BeforeWave, &Subject::Wave(wave.name.clone()))
        {
            self.checkpoint_state.change();
        }
        Some(wave.name.clone())
    }

    /// Where a new wave stands: before those that come after it in the plan. The driver's own pod goes last and alone.
    fn place_of_wave(&self, name: &str, plan: &Plan) -> usize {
        let mut later = plan.waves.iter().skip_while(|wave| wave.name != name).skip(1);
        let next = later.find_map(|wave| self.waves_by_name(&wave.name).next());
        let waves = self.plan_state.waves();
        let own = waves.iter().position(|run| self.is_of_own_pod(run));
        next.or(own).unwrap_or(waves.len())
    }

    /// The places of waves with this name, apart from that of the driver's own pod.
    fn waves_by_name(&self, name: &str) -> impl Iterator<Item = usize> {
        let waves = self.plan_state.waves().iter().enumerate();
        let others = waves.filter(|(_, run)| !self.is_of_own_pod(run));
        others.filter_map(move |(place, run)| (run.wave().name == name).then_some(place))
    }

    fn is_of_own_pod(&self, run: &WaveRun) -> bool {
        let own = self.request.settings.own_pod.as_ref();
        own.is_some_and(|own| run.contains(&own.uid))
    }

    /// Waves hold up those that were added meanwhile no longer than the plan says that was made for these.
    pub(super) fn limit_waves(&mut self, plan: &Plan) {
        for run in self.plan_state.waves_mut() {
            let planned = plan.waves.iter().find(|wave| wave.name == run.wave().name);
            if let Some(timeout) = planned.and_then(|wave| wave.timeout) {
                run.hold_up_for(timeout, self.now);
            }
        }
    }

    /// Calls the hooks of waves that have begun again, for the pods that came later.
    pub(super) fn call_hooks_again(&mut self) {
        for place in 0..self.plan_state.waves().len() {
            let Some(run) = self
                .plan_state
                .waves()
                .get(place)
                .filter(|run| run.has_late_pods())
            else {
                continue;
            };
            let subject = Subject::Wave(run.wave().name.clone());
            let pods = self.plan_state.still_leaving(HookPhase::BeforeWave, &subject);
            let is_open = pods.is_empty() || self.gate(HookPhase::BeforeWave, &subject).is_open();
            if let Some(run) = self.plan_state.wave_mut(place).filter(|_| is_open) {
                run.admit_late_pods();
            }
        }
    }
}
