//! Maintenance is over: hooks, lifting the cordon if it is ours, hooks again.

use super::Drain;
use crate::{HookPhase, Outcome, Phase, Subject};

impl Drain {
    /// The node is all that an uncordon needs to know.
    pub(super) fn begin_uncordon(&mut self) {
        let Some(node) = self.world.node() else {
            return;
        };
        self.memory.own_cordon =
            node.unschedulable && node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
        self.enter(Phase::Uncordoning);
    }

    /// Hooks, the cordon, hooks.
    pub(super) fn uncordon(&mut self) {
        let Some(kept) = self.cordon_lifted else {
            if self.gate(HookPhase::BeforeUncordon, &Subject::Node).is_open() {
                self.lift_cordon();
            }
            return;
        };
        if self.gate(HookPhase::AfterUncordon, &Subject::Node).is_open() {
            self.outcome = Some(Outcome::Uncordoned { cordon_kept: kept });
            self.wind_up();
        }
    }

    /// Lifts our own cordon; leaves any other.
    fn lift_cordon(&mut self) {
        let Some(node) = self.world.node() else {
            return;
        };
        let is_marked = node.checkpoint.as_ref().is_some_and(|mark| mark.own_cordon);
        if self.memory.own_cordon && is_marked && node.unschedulable {
            let goes_on = self.has_hooks(HookPhase::AfterUncordon);
            let keep = goes_on.then(|| self.checkpoint(Phase::Uncordoning, false));
            self.push_uncordon(keep);
        } else if !self.outbox.writes() {
            self.cordon_lifted = Some(node.unschedulable);
            self.uncordon();
        }
    }
}
