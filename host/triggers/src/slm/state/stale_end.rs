//! Events that ended before they began.

use scupper_api::ClaimStatus;
use scupper_engine::Intent;

use super::{SlmOutput, SlmState, TrackedEvent};

impl SlmState {
    /// Warns of an event of ours that succeeded without a call: the node condition already read as done.
    pub(super) fn warn_of_stale_end(&mut self, known: &TrackedEvent, was_alive: bool) {
        let event = &known.event;
        let stale = was_alive && event.claim == ClaimStatus::Succeeded && !known.called;
        let intent = self.identity.intents.get(&event.transition);
        let (Some(intent), true) = (intent, stale && self.identity.owns(event)) else {
            return;
        };
        let (reason, opposite) = match intent {
            Intent::Drain => ("NotDrained", "uncordon"),
            Intent::Uncordon => ("NotUncordoned", "drain"),
        };
        self.outputs.push_back(SlmOutput::Warn {
            reason,
            message: format!(
                "LifecycleEvent {} succeeded without the driver having been called, because the node condition \
                 LifecycleTransition still had the end of transition {} as its reason: nothing was done. Ask for \
                 the {opposite} transition first",
                event.name, event.transition
            ),
        });
    }
}
