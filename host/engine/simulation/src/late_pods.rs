//! Pods that come during the drain: each leaves as the plan says that decided on it.

use scupper_engine::{HookPhase, Pod, Request, Task};

use crate::invariants::Invariants;
use crate::violation::{Checked, broken};

impl Invariants {
    /// Invariant 7: the hooks of the pod's wave have been called for it and have finished, and its grace period is no
    /// longer than the wave allows. Of a pod that is deleted because of the deadline it is never 0: then the API server would
    /// forget the pod before the kubelet has ended it.
    pub(crate) fn wave_is_ready(
        &self,
        request: &Request,
        pod: &Pod,
        task: &Task,
        is_forced: bool,
    ) -> Checked {
        let uid = &pod.id.uid;
        let Some(wave) = self.plans.wave_of(uid) else {
            return Ok(());
        };
        let mut policies = request.policies.iter();
        let waits = policies.find(|policy| {
            let has_hook = policy.phases.contains(&HookPhase::BeforeWave);
            has_hook && !self.hooks.is_done_for(&policy.name, &wave.name, uid, &self.plans)
        });
        if let Some(policy) = waits {
            let (policy, wave) = (&policy.name, &wave.name);
            return broken(
                7,
                format!("pod {uid} leaves before {policy} has finished before-wave of {wave} for it"),
            );
        }
        let (Task::Evict { grace_seconds, .. } | Task::Delete { grace_seconds, .. }) = task else {
            return Ok(());
        };
        let grace = grace_seconds.unwrap_or(pod.grace_seconds);
        let most = wave.max_grace_seconds.map(|most| most.max(u64::from(is_forced)));
        match most.filter(|most| grace > *most) {
            Some(most) => broken(
                7,
                format!("pod {uid} gets {grace} seconds of grace, and its wave allows {most}"),
            ),
            None => Ok(()),
        }
    }
}
