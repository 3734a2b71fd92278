//! Chooses the Deployments to surge when their budgets are tried. The plan has looked once, and a budget may have been open
//! then only by the replica of another drain, or while a rollout was settling.

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use crate::{Notice, SurgePlan, SurgeSettings, Task, Time, Uid};

/// When the host is asked for surges.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// A budget holds a pod that no surge is for.
    is_wanted: bool,
    /// Since the first such pod.
    retry_at: Option<Time>,
    tries: u32,
}

impl Choice {
    pub(super) fn retry_at(&self) -> Time {
        self.retry_at.unwrap_or_default()
    }

    fn again(&mut self, now: Time, seed: &str) {
        self.retry_at = Some(Backoff::CHOICE.after(now, self.tries, seed));
        self.tries = self.tries.saturating_add(1);
    }
}

impl Drain {
    /// A budget holds this pod.
    pub(super) fn want_surge(&mut self, pod: &Uid) {
        let covers = |settings: &SurgeSettings| {
            let pod = self.cluster.pod(pod);
            pod.is_some_and(|pod| settings.covers(&pod.id.namespace))
        };
        let is_covered = self.request.settings.surge.as_ref().is_some_and(covers);
        if !is_covered || self.surges.covers(pod) {
            return;
        }
        let choice = &mut self.surges.choice;
        choice.is_wanted = true;
        if choice.retry_at.is_none() {
            // Most budgets only wait for a replacement.
            choice.again(self.now, &self.request.id);
        }
    }

    /// Asks for the surges of pods that their budgets hold.
    pub(super) fn choose_surges(&mut self) {
        let choice = &mut self.surges.choice;
        let is_due = choice.retry_at.is_some_and(|at| self.now >= at);
        if !choice.is_wanted || !is_due || self.outbox.chooses_surges() {
            return;
        }
        choice.is_wanted = false;
        choice.again(self.now, &self.request.id);
        let plan = self.plan_state.plan().clone();
        self.outbox.push(Task::ChooseSurges { plan }, Job::ChooseSurges);
    }

    /// The host has chosen; `None`: it could not.
    pub(super) fn surges_chosen(&mut self, chosen: Option<SurgePlan>) {
        let Some(mut chosen) = chosen.filter(|_| self.may_ask()) else {
            return;
        };
        let (raises, surges, method) = (&self.raises, &mut self.surges, chosen.method);
        chosen
            .surges
            .retain(|surge| !raises.is_over(&surge.deployment.uid) && surges.add(method, surge));
        if chosen.surges.is_empty() {
            return;
        }
        self.extend_raises(&chosen.surges);
        self.plan_state.add_surges(chosen);
        self.outbox
            .notify(Notice::Planned(self.plan_state.plan().clone()));
    }
}
