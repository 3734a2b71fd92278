//! Maintenance is over: hooks, lifting the cordon if it is ours, hooks again.

use alloc::format;
use alloc::string::String;

use super::Drain;
use super::cordon_state::{Cordon, CordonState};
use crate::{HookPhase, Outcome, Phase, Subject};

/// How far an uncordon has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UncordonStep {
    /// Hooks run, and then a cordon of ours is lifted.
    #[default]
    Lifting,
    /// A cordon of ours is lifted, and any other is kept. Hooks run.
    Lifted {
        /// The node is still cordoned.
        cordon_kept: bool,
    },
}

impl UncordonStep {
    pub(super) const fn is_lifted(self) -> bool {
        matches!(self, Self::Lifted { .. })
    }
}

impl Drain {
    /// The node is all that an uncordon needs to know. Without a policy that must undo its part, it changes nothing: the
    /// node would take pods, and stay out of service elsewhere.
    pub(super) fn begin_uncordon(&mut self) {
        if let Some((policy, count)) = self.absent_to_undo() {
            let policy = policy.clone();
            let others = match count - 1 {
                0 => String::new(),
                others => format!(", nor are {others} more"),
            };
            self.stop(Outcome::PolicyFailed {
                policy,
                message: format!(
                    "it must undo its part of a drain of this node and is not active here{others} (not loaded, or in mode shadow); nothing has changed"
                ),
            });
            return;
        }
        let Some(node) = self.cluster.node() else {
            return;
        };
        let is_marked = node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
        self.cordon = CordonState::known(match (node.unschedulable, is_marked) {
            (true, true) => Cordon::Ours,
            (true, false) => Cordon::Foreign,
            (false, _) => Cordon::Unknown,
        });
        self.enter(Phase::Uncordoning);
    }

    /// Hooks, the cordon, hooks.
    pub(super) fn uncordon(&mut self) {
        let UncordonStep::Lifted { cordon_kept } = self.uncordon else {
            if self.gate(HookPhase::BeforeUncordon, &Subject::Node).is_open() {
                self.lift_cordon();
            }
            return;
        };
        if self.gate(HookPhase::AfterUncordon, &Subject::Node).is_open() {
            self.outcome = Some(Outcome::Uncordoned { cordon_kept });
            self.finalize();
        }
    }

    /// Lifts our own cordon; leaves any other.
    fn lift_cordon(&mut self) {
        let Some(node) = self.cluster.node() else {
            return;
        };
        let is_marked = node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
        if self.cordon.is_ours() && is_marked && node.unschedulable {
            let goes_on = self.has_hooks(HookPhase::AfterUncordon) || self.raises.any_open();
            let keep = goes_on.then(|| self.checkpoint(node.uid.clone(), Phase::Uncordoning, false));
            self.push_uncordon(keep);
        } else if !self.outbox.writes() {
            let cordon_kept = node.unschedulable;
            self.uncordon = UncordonStep::Lifted { cordon_kept };
            self.uncordon();
        }
    }
}
