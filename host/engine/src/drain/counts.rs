//! What a drain has done so far, across its processes: the last one must not report that no pod was evicted
//! where its predecessor evicted twenty.

use super::Drain;
use super::measure::Waits;
use super::plan_state::PodState;
use super::wave_run::WaveRun;
use crate::{Counts, Notice, Pod, Summary, Task, Totals};

impl Totals {
    /// Counts a command.
    pub(super) const fn push(&mut self, task: &Task) {
        match task {
            Task::Evict { .. } => self.evictions += 1,
            Task::Delete { .. } => {
                self.evictions += 1;
                self.deletions += 1;
            }
            Task::Step { .. } => self.hook_steps += 1,
            _ => {}
        }
    }

    /// A command that was not picked up does not count.
    pub(super) const fn take_back(&mut self, task: &Task) {
        match task {
            Task::Evict { .. } => self.evictions = self.evictions.saturating_sub(1),
            Task::Delete { .. } => {
                self.evictions = self.evictions.saturating_sub(1);
                self.deletions = self.deletions.saturating_sub(1);
            }
            Task::Step { .. } => self.hook_steps = self.hook_steps.saturating_sub(1),
            _ => {}
        }
    }

    /// Counts a notice.
    pub(super) const fn notify(&mut self, notice: &Notice) {
        match notice {
            Notice::PodGone { .. } => self.gone += 1,
            Notice::WaveStarted { .. } => self.waves += 1,
            _ => {}
        }
    }
}

impl Drain {
    /// The counts to save now.
    pub(super) fn counts(&self) -> Counts {
        // A process that resumes reports the waves that still have pods, and counts them then.
        let is_resumed = |run: &&WaveRun| run.is_reported() && !run.left().is_empty();
        let resumed = self.plan_state.waves().iter().filter(is_resumed).count();
        let mut totals = self.totals();
        totals.waves = totals.waves.saturating_sub(number(resumed));
        let pods = self.plan_state.states_of(self.cluster.pods());
        let planned = pods.filter_map(|(pod, pod_state)| pod_state.map(|_| pod.created));
        Counts {
            at: self.now,
            leaving: self.plan_state.leaving(),
            newest: planned.max().unwrap_or_default(),
            totals,
        }
    }

    fn totals(&self) -> Totals {
        let (hook_wait, budget_wait) = self.waits.totals(self.now);
        Totals {
            hook_wait,
            budget_wait,
            ..*self.outbox.totals()
        }
    }

    /// The summary of a drain that ends now.
    pub(super) fn summary(&self) -> Summary {
        let keeps = |(_, state): &(&_, &PodState)| matches!(state, PodState::Keeps);
        Summary {
            started: self.started,
            ended: self.now,
            totals: self.totals(),
            kept: number(self.plan_state.pods().filter(keeps).count()),
            stayed: self.stayed(),
            remaining: number(self.remaining().len()),
            volume_wait: self.volumes.held_for(self.now),
            volumes_left: self.volumes.left().cloned(),
            to_undo: self.not_undone(),
            kept_by: self.kept_by(),
            forced: self.forcing.pods().to_vec(),
        }
    }

    /// Counts on from what an earlier process saved.
    pub(super) fn restore_counts(&mut self, counts: Counts) {
        self.waits = Waits::restore(&counts);
        *self.outbox.totals_mut() = counts.totals;
        self.restored_counts = Some(counts);
    }

    /// It came to the cordoned node while no process worked on it, or the last one had not decided on it: a newcomer like
    /// any other.
    pub(super) fn came_meanwhile(&self, pod: &Pod) -> bool {
        let saved = self.restored_counts.filter(|_| self.was_cordoned());
        saved.is_some_and(|counts| !counts.knew(pod))
    }

    /// The plan is agreed. Pods that were to leave when the earlier process saved, and are not there any more, have left
    /// after that: no write records each of them.
    pub(super) fn count_departed(&mut self) {
        let Some(counts) = self.restored_counts.take() else {
            return;
        };
        let targets = self.plan_state.targets_with(self.cluster.pods());
        let still = targets.filter(|(_, pod)| pod.is_some_and(|pod| counts.knew(pod)));
        let departed = counts.leaving.saturating_sub(number(still.count()));
        let gone = &mut self.outbox.totals_mut().gone;
        *gone = gone.saturating_add(departed);
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
