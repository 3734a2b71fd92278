//! A token that Slurm does not take, or whose user may not change nodes.
//!
//! One that was never good ends the drain before anything is changed. One that was good and went bad may be renewed, and is
//! waited for, as long as `token-timeout` says. An undo has no time for that.

use scupper_sdk::{Call, Outcome, Phase, log};

use super::hook_state::HookState;
use super::messages::{length, moment};
use super::slurm_error::SlurmError;
use crate::settings::Settings;

/// What a step comes to that met such a trouble. `memory` is what the last step left behind.
pub(super) fn outcome(
    error: &SlurmError,
    call: &Call,
    settings: &Settings,
    mut hook_state: HookState,
) -> Outcome {
    if call.phase == Phase::OnCancel {
        let stays = "anything that this drain changed in Slurm stays until the node is uncordoned";
        return Outcome::failed(format!("{error}; {stays}")).into();
    }
    if !was_good(error, call, &hook_state) {
        return Outcome::failed(error.to_string()).into();
    }
    let timeout = settings.slurmrestd.token_timeout;
    let since = *hook_state.refused.get_or_insert_with(|| {
        log::warn!("{error}");
        call.drain.now
    });
    let until = since.saturating_add(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    if until <= call.drain.now {
        let waited = length(timeout);
        return Outcome::failed(format!(
            "{error}; no better one came within {waited} (`token-timeout`)"
        ))
        .into();
    }
    let until = moment(until);
    Outcome::pending(format!("{error}; waits for a better one until {until}"))
        .again_after(settings.poll)
        .waiting_for("the token for Slurm", "to be renewed", Some(since))
        .state(hook_state.bytes())
        .into()
}

/// The token could do this before: in this hook, or in the one before the cordon, which is ours only if that one went well.
fn was_good(error: &SlurmError, call: &Call, hook_state: &HookState) -> bool {
    match call.phase {
        Phase::BeforeUncordon | Phase::AfterUncordon => true,
        Phase::BeforeCordon => could(error, hook_state),
        _ => call.node.own_cordon || could(error, hook_state),
    }
}

fn could(error: &SlurmError, hook_state: &HookState) -> bool {
    match error {
        SlurmError::NotAllowed(_) => hook_state.drained,
        _ => hook_state.version.is_some(),
    }
}
