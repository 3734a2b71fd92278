//! Evictions that the API server refuses with 401 or 403: a short refusal is waited out, as for writes of the node, and a
//! long one ends the drain. Pods that can leave do so first.

use alloc::format;
use alloc::string::String;

use super::Drain;
use super::backoff::Backoff;
use super::eviction_target::Again;
use super::wave_run::WaveRun;
use crate::{HumanDuration, Outcome, Pod, Reason, Uid, and_more};

impl Drain {
    /// The API server refuses us.
    pub(super) fn removal_forbidden(&mut self, uid: &Uid, message: String) {
        self.refused(uid, Reason::Forbidden { message }, Again::After(Backoff::REFUSAL));
        let patience = self.request.settings.forbidden_timeout;
        if let Some(target) = self.plan_state.target_mut(uid) {
            target.limit_forbidden(patience, self.now);
        }
    }

    /// Ends the drain if all that is left are pods whose evictions were refused for long, and pods that wait for these. One
    /// that deletes pods at its deadline goes on until then.
    pub(super) fn fail_when_forbidden(&mut self) {
        if !self.may_ask() || self.forces_at().is_some() {
            return;
        }
        let (patience, now) = (self.request.settings.forbidden_timeout, self.now);
        let targets = self.plan_state.targets().map(|(_, target)| target);
        let mut refused =
            targets.filter_map(|target| Some((target.pod(), target.forbidden_for(patience, now)?)));
        let Some((pod, (lasted, message))) = refused.next() else {
            return;
        };
        let (more, lasted) = (and_more(refused.count()), HumanDuration(lasted));
        let waves_wait = self.does_wave_wait_for_pods();
        if self
            .cluster
            .pods()
            .values()
            .all(|pod| self.is_stuck(pod, waves_wait))
        {
            let message = format!("the API server has refused to remove {pod}{more} for {lasted}: {message}");
            self.stop(Outcome::Failed { message });
        }
    }

    /// Nothing but pods that must leave lets the next wave begin.
    fn does_wave_wait_for_pods(&self) -> bool {
        let mut waves = self.plan_state.waves().iter();
        let current = waves.find(|run| !run.has_ended() && !run.left().is_empty());
        current.is_none_or(|run| run.has_begun() && run.overdue_at().is_none())
    }

    /// It need not leave, or the API server has refused to remove it for long, or it waits for such pods.
    fn is_stuck(&self, pod: &Pod, waves_wait: bool) -> bool {
        let uid = &pod.id.uid;
        let Some(target) = self.plan_state.target(uid) else {
            return self.plan_state.stays(uid);
        };
        let patience = self.request.settings.forbidden_timeout;
        let has_begun = || {
            self.plan_state
                .wave_of_target(target)
                .is_some_and(WaveRun::has_begun)
        };
        let is_refused = target.forbidden_for(patience, self.now).is_some();
        pod.deletion.is_none() && (is_refused || (waves_wait && !has_begun()))
    }
}
