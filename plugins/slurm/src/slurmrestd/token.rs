//! A token that Slurm rejects, or whose user may not change nodes.
//!
//! If the token was never valid, the drain fails before any change. If it was valid before, it may be renewed, and the drain
//! waits for `token-timeout`. A cancel has no time for that.

use scupper_sdk::{Call, Outcome, Phase, log};

use super::hook_state::HookState;
use super::messages::{length, moment};
use super::slurm_error::SlurmError;
use crate::settings::Settings;

/// The outcome of a step with such an error. `hook_state` is the state of the previous step.
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
            "{error}; no valid token within {waited} (`token-timeout`)"
        ))
        .into();
    }
    let until = moment(until);
    Outcome::pending(format!("{error}; waiting for a valid token until {until}"))
        .again_after(settings.poll)
        .waiting_for("the token for Slurm", "to be renewed", Some(since))
        .state(hook_state.bytes())
        .into()
}

/// Whether the token was valid before: in this hook, or in the hook before our own cordon.
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
