//! What a drain has done so far, across its processes: the last one must not report that no pod was evicted
//! where its predecessor evicted twenty.

use super::Drain;
use super::wave_run::WaveRun;
use crate::{Counts, Time};

impl Drain {
    /// The counts to save now.
    pub(super) fn counts(&self) -> Counts {
        let is_running = |run: &&WaveRun| run.has_begun() && !run.has_ended();
        let running = self.plan_state.waves().iter().filter(is_running).count();
        let running = u32::try_from(running).unwrap_or(u32::MAX);
        Counts {
            at: self.now,
            leaving: self.plan_state.leaving(),
            gone: self.summary.gone,
            waves: self.summary.waves.saturating_sub(running),
            evictions: self.summary.evictions,
            budget_refusals: self.summary.budget_refusals,
            hook_steps: self.summary.hook_steps,
            hook_wait: self.summary.hook_wait,
            budget_wait: self.summary.budget_wait,
        }
    }

    /// Counts on from what an earlier process saved.
    pub(super) fn restore_counts(&mut self, counts: Counts) {
        self.summary.gone = counts.gone;
        self.summary.waves = counts.waves;
        self.summary.evictions = counts.evictions;
        self.summary.budget_refusals = counts.budget_refusals;
        self.summary.hook_steps = counts.hook_steps;
        self.summary.hook_wait = counts.hook_wait;
        self.summary.budget_wait = counts.budget_wait;
        self.restored_counts = Some((counts.at, counts.leaving));
    }

    /// The plan is agreed. Pods that were to leave when the earlier process saved, and are not there any more, have left
    /// after that: no write records each of them.
    pub(super) fn count_departed(&mut self) {
        let Some((at, leaving)) = self.restored_counts.take() else {
            return;
        };
        let was_there = |created: Time| created <= at;
        let still = self.plan_state.targets().filter(|(uid, _)| {
            let pod = self.cluster.pod(uid);
            pod.is_some_and(|pod| was_there(pod.created))
        });
        let still = u32::try_from(still.count()).unwrap_or(u32::MAX);
        let departed = leaving.saturating_sub(still);
        self.summary.gone = self.summary.gone.saturating_add(departed);
    }
}
