//! Whether policies are to keep their changes when a drain ends.

use scupper_engine::{Checkpoint, HookPhase, Outcome, Phase, Request, Task};

use crate::coverage::Coverage;
use crate::knowledge::Knowledge;
use crate::violation::{Checked, broken};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// What an earlier process had told policies while it was rolling back.
    pub(crate) saved: Option<bool>,
    /// The drain had found or tried to make a cordon before it ended.
    pub(crate) has_cordon: bool,
    /// It ended before it had seen the node, after a crash.
    unseen: bool,
    /// It ended before its own cordon, under one that was made ahead of it.
    pub(crate) ends_ahead: bool,
}

impl Held {
    pub(crate) fn restored(checkpoint: Option<&Checkpoint>) -> Self {
        let rolling_back = checkpoint.filter(|checkpoint| checkpoint.phase == Phase::RollingBack);
        Self {
            saved: rolling_back.and_then(|checkpoint| checkpoint.held),
            has_cordon: checkpoint.is_some_and(|checkpoint| checkpoint.phase.is_past_cordoning()),
            unseen: false,
            ends_ahead: false,
        }
    }

    /// Whether there was a cordon of its own, or one made ahead of it, shows when the node is seen.
    pub(crate) fn sees(&mut self, known: &Knowledge) {
        if std::mem::take(&mut self.unseen) && known.is_ahead {
            self.has_cordon = false;
            self.ends_ahead = true;
        }
    }

    pub(crate) fn entered(&mut self, phase: Phase, known: &Knowledge) {
        // A cordon that was made ahead of the drain is none until the drain comes to its own.
        let is_cordoned = known.is_cordoned() && !known.is_ahead;
        let may_stand = is_cordoned || known.node_told_gone || !known.heard_node;
        self.unseen |= phase == Phase::RollingBack && !known.heard_node && !self.has_cordon;
        self.ends_ahead |= phase == Phase::RollingBack && known.is_ahead && !self.has_cordon;
        self.has_cordon = match phase {
            // Also if others have lifted the cordon that it had found.
            Phase::Preparing => false,
            Phase::RollingBack | Phase::Finished => self.has_cordon || may_stand,
            phase => self.has_cordon || phase.follows_plan(),
        };
    }

    /// Invariant 5: policies keep their changes if there is a cordon and it is to stay, and only then.
    pub(crate) fn reported(
        &self,
        task: &Task,
        outcome: Option<&Outcome>,
        held: bool,
        request: &Request,
        coverage: &mut Coverage,
    ) -> Checked {
        if !matches!(task, Task::Step { step, .. } if step.phase == HookPhase::OnCancel) {
            return Ok(());
        }
        let is_cancelled = matches!(outcome, Some(Outcome::Cancelled { .. }));
        let keeps = self.saved.unwrap_or(self.has_cordon);
        let stays = !is_cancelled && !request.settings.uncordon_on_failure && keeps;
        coverage.count("held", if held { "yes" } else { "no" });
        if held == stays {
            Ok(())
        } else {
            broken(
                5,
                format!("it ends as {outcome:?} and tells policies that it is held: {held}"),
            )
        }
    }
}
