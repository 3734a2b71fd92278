//! A token that Slurm rejects, or whose user may not change nodes: it is waited for if it was good.

use scupper_sdk::credential::Rejected;
use scupper_sdk::{Call, Outcome};

use super::hook_state::HookState;
use super::slurm_error::SlurmError;
use crate::settings::Settings;

/// The outcome of a step with such an error. `hook_state` is the state of the previous step.
pub(super) fn outcome(
    error: &SlurmError,
    call: &Call,
    settings: &Settings,
    mut hook_state: HookState,
) -> Outcome {
    let rejected = Rejected {
        error: &error.to_string(),
        credential: "token",
        system: "Slurm",
        was_accepted: match error {
            SlurmError::NotAllowed(_) => hook_state.drained,
            _ => hook_state.version.is_some(),
        },
    };
    let timeout = settings.slurmrestd.token_timeout;
    match timeout.wait(call, &rejected, &mut hook_state.refused) {
        Ok(pending) => pending
            .again_after(settings.poll)
            .state(hook_state.bytes())
            .into(),
        Err(failure) => failure.into(),
    }
}
