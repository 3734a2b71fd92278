//! An operator who enables the service in the middle of a drain has a reason: the drain waits, and says so.

use scupper_sdk::{Call, Outcome, Pending, Timestamp, log};

use super::node_events;
use crate::nova::Service;
use crate::settings::Settings;
use crate::state::HookState;

/// What the drain waits for then; `None`: a service that is enabled is to be disabled. `now` is Nova's time.
pub(super) fn overrides(
    call: &Call,
    settings: &Settings,
    service: &Service,
    hook_state: &mut HookState,
    now: Timestamp,
) -> Option<Pending> {
    if !service.is_enabled() {
        if hook_state.overridden.take().is_some() {
            // Servers may have been scheduled here until now.
            hook_state.disabled = Some(now);
        }
        hook_state.disabled_by_nova = service.is_disabled_by_nova();
        return None;
    }
    if hook_state.disabled_by_nova {
        // Nova itself has enabled it, and this drain disables it now. Servers may have been scheduled here.
        (hook_state.disabled, hook_state.announced) = (None, false);
        (hook_state.empty_since, hook_state.occupied) = (None, true);
        return None;
    }
    if hook_state.disabled.is_none() && !call.phase.follows_before_drain() {
        return None;
    }
    let host = &service.host;
    if hook_state.overridden.is_none() {
        log::warn!("nova-compute on {host} was enabled, not by Scupper");
    }
    let is_reported = hook_state.overridden == Some(true);
    hook_state.overridden = Some(is_reported || node_events::enabled_meanwhile(host, &call.drain.name));
    (hook_state.empty_since, hook_state.occupied) = (None, true);
    let progress =
        format!("an operator enabled nova-compute on {host}; disable it again, or cancel this drain");
    let pending = Outcome::pending(progress).again_after(settings.poll);
    let what = format!("nova-compute on {host}");
    Some(pending.waiting_for(what, "enabled by an operator: it may get servers", None))
}
