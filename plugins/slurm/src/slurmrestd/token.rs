//! A token that Slurm does not take, or whose user may not change nodes.
//!
//! One that was never good ends the drain before anything is changed. One that was good and went bad may be renewed, and is
//! waited for, as long as `token-timeout` says. An undo has no time for that.

use scupper_sdk::{Call, Outcome, Phase, log};

use super::memory::Memory;
use super::trouble::Trouble;
use super::words::{length, moment};
use crate::settings::Settings;

/// What a step comes to that met such a trouble. `memory` is what the last step left behind.
pub(super) fn outcome(trouble: &Trouble, call: &Call, settings: &Settings, mut memory: Memory) -> Outcome {
    if call.phase == Phase::OnCancel {
        let stays = "anything that this drain changed in Slurm stays until the node is uncordoned";
        return Outcome::failed(format!("{trouble}; {stays}")).into();
    }
    if !was_good(trouble, call, &memory) {
        return Outcome::failed(trouble.to_string()).into();
    }
    let timeout = settings.slurmrestd.token_timeout;
    let since = *memory.refused.get_or_insert_with(|| {
        log::warn!("{trouble}");
        call.drain.now
    });
    let until = since.saturating_add(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    if until <= call.drain.now {
        let waited = length(timeout);
        return Outcome::failed(format!(
            "{trouble}; no better one came within {waited} (`token-timeout`)"
        ))
        .into();
    }
    let until = moment(until);
    Outcome::pending(format!("{trouble}; waits for a better one until {until}"))
        .again_after(settings.poll)
        .waiting_for("the token for Slurm", "to be renewed", Some(since))
        .state(memory.bytes())
        .into()
}

/// The token could do this before: in this hook, or in the one before the cordon, which is ours only if that one went well.
fn was_good(trouble: &Trouble, call: &Call, memory: &Memory) -> bool {
    match call.phase {
        Phase::BeforeUncordon | Phase::AfterUncordon => true,
        Phase::BeforeCordon => could(trouble, memory),
        _ => call.node.own_cordon || could(trouble, memory),
    }
}

fn could(trouble: &Trouble, memory: &Memory) -> bool {
    match trouble {
        Trouble::NotAllowed(_) => memory.drained,
        _ => memory.version.is_some(),
    }
}
