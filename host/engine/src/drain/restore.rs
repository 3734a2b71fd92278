//! Continuing what an earlier process began.

use super::Drain;
use super::checkpoint_state::CheckpointState;
use super::cordon_state::{Cordon, CordonState};
use super::hook_state::{HookKey, OpenHook};
use super::raising::Raises;
use super::volumes::VolumeState;
use crate::Checkpoint;

impl Drain {
    /// Continues from what an earlier process saved.
    pub(super) fn restore(&mut self, checkpoint: Checkpoint) {
        self.started = checkpoint.started;
        self.cordon = CordonState::known(match (checkpoint.own_cordon, checkpoint.inherited) {
            _ if checkpoint.ahead => Cordon::Unknown,
            (true, true) => Cordon::Inherited,
            (true, false) => Cordon::Ours,
            (false, _) => Cordon::Unknown,
        });
        self.checkpoint_state = CheckpointState::restored(&checkpoint);
        self.cluster.expect_node(checkpoint.node);
        self.restore_counts(checkpoint.counts);
        self.restore_begun(*checkpoint.begun, checkpoint.phase);
        self.raises = Raises::restored(checkpoint.raised, self.now);
        self.volumes = VolumeState::restored(checkpoint.volumes_since.map(|since| since.min(self.now)));
        for (policy, phase, subject) in checkpoint.done {
            let key = HookKey {
                phase,
                subject,
                policy,
            };
            self.hooks.restore_done(key);
        }
        for saved in checkpoint.hooks {
            let key = HookKey {
                phase: saved.phase,
                subject: saved.subject.clone(),
                policy: saved.policy.clone(),
            };
            self.hooks.restore_open(key, OpenHook::resumed(saved, self.now));
        }
        self.resumed = Some(checkpoint.phase);
    }
}
