//! What became of a hook that was called again and again.

use std::time::Duration;

use crate::Outcome;

/// The steps of one hook.
#[derive(Clone, Debug)]
pub struct HookRun {
    /// What each step answered.
    pub outcomes: Vec<Outcome>,
    /// How long it took, from the first step to the last.
    pub took: Duration,
}

impl HookRun {
    /// What the last step answered.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcomes.last()
    }

    /// Where it stood, step by step, for as long as it was pending.
    pub fn progress(&self) -> Vec<&str> {
        let pending = self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Pending(pending) => Some(pending.progress.as_str()),
            Outcome::Done | Outcome::Failed(_) => None,
        });
        pending.collect()
    }
}
