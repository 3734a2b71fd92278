//! Pods that have been terminating for longer than the request allows to wait: they are skipped, as if the plan had kept
//! them.

use core::time::Duration;

use alloc::string::String;
use alloc::vec::Vec;

use super::Drain;
use crate::filter::{skipped, skipped_at};
use crate::{Notice, Plan, Pod, Time, Uid};

impl Drain {
    /// Skips pods that have been terminating for too long by now, and reports the plan that results.
    pub(super) fn skip_overdue(&mut self) {
        let timeout = self.request.settings.filters.skip_wait_for_delete_timeout;
        if timeout == Duration::ZERO {
            return;
        }
        let overdue = self
            .awaited()
            .filter_map(|pod| Some((pod.id.uid.clone(), skipped(pod, timeout, self.now)?)));
        let overdue: Vec<(Uid, String)> = overdue.collect();
        if overdue.is_empty() {
            return;
        }
        for (uid, reason) in overdue {
            self.skip_pod(&uid, reason);
        }
        self.outbox.notify(Notice::Planned(self.remaining_plan()));
    }

    /// The plan without what has gone: what is still to be done.
    fn remaining_plan(&self) -> Plan {
        let mut plan = self.plan_state.plan().clone();
        let is_there = |uid: &Uid| self.cluster.pod(uid).is_some();
        plan.decisions.retain(|decision| is_there(&decision.pod));
        for wave in &mut plan.waves {
            wave.pods.retain(is_there);
        }
        plan.waves.retain(|wave| !wave.pods.is_empty());
        plan
    }

    /// When pods will have been terminating for too long.
    pub(super) fn skips_due(&self) -> impl Iterator<Item = Time> {
        let timeout = self.request.settings.filters.skip_wait_for_delete_timeout;
        let awaited = (timeout > Duration::ZERO).then(|| self.awaited());
        awaited
            .into_iter()
            .flatten()
            .filter_map(move |pod| skipped_at(pod, timeout))
    }

    /// Pods that are to leave and are there.
    fn awaited(&self) -> impl Iterator<Item = &Pod> {
        let targets = self.plan_state.targets();
        targets.filter_map(|(uid, _)| self.cluster.pod(uid))
    }

    fn skip_pod(&mut self, uid: &Uid, reason: String) {
        self.forget_hooks_of(uid);
        self.plan_state.skip_pod(uid, reason);
    }
}
