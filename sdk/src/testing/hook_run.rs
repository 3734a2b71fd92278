//! The result of calling a hook until it ended.

use std::time::Duration;

use crate::Outcome;

/// The steps of one hook.
#[derive(Clone, Debug)]
pub struct HookRun {
    /// The outcome of each step.
    pub outcomes: Vec<Outcome>,
    /// The time from the first step to the last.
    pub took: Duration,
}

impl HookRun {
    /// The outcome of the last step.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcomes.last()
    }

    /// The progress of each pending step.
    pub fn progress(&self) -> Vec<&str> {
        let pending = self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Pending(pending) => Some(pending.progress.as_str()),
            Outcome::Done | Outcome::Failed(_) => None,
        });
        pending.collect()
    }
}
