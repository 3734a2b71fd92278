//! Kubernetes Events of the node, each emitted once.
//!
//! An Event that cannot be emitted is logged and does not stop the drain.

use scupper_sdk::{count, events, log};

use super::decide::{Decision, Overdue};
use super::observe::Snapshot;
use super::reasons;
use crate::cloud::Cloud;
use crate::nova::{Migration, Server};
use crate::settings::{Moves, OnDeadline};
use crate::state::HookState;

/// The most failures that one step reports: each costs two requests for Nova's reason. The next step reports the others.
const AT_ONCE: usize = 4;

/// `false`: retry later.
pub(super) fn disabled(host: &str, drain: &str) -> bool {
    let note = format!("nova-compute on {host} is disabled for {drain}: Nova schedules no more servers here");
    emit("ComputeServiceDisabled", &note)
}

/// The service was disabled before the drain began, and not by a drain of this node. `false`: retry later.
pub(super) fn found_disabled(host: &str, reason: &str) -> bool {
    let note = format!(
        "nova-compute on {host} was already disabled: {}; drain and uncordon keep it disabled",
        reason_text(reason)
    );
    emit("ComputeServiceFoundDisabled", &note)
}

/// The node is back in service, but its compute host is not.
pub(super) fn stays_disabled(host: &str, reason: &str) {
    let note = format!(
        "nova-compute on {host} stays disabled: {}; Scupper did not disable it; to enable it: `openstack compute service set --enable {host} nova-compute`",
        reason_text(reason)
    );
    warn("ComputeServiceStaysDisabled", &note);
}

/// A drain of this node has disabled it, but the configuration no longer maps it to this node.
pub(super) fn not_mapped(host: &str, node: &str) {
    let note = format!(
        "nova-compute on {host} stays disabled: a drain of {node} disabled it, but the configuration no longer maps it to this node; to enable it: `openstack compute service set --enable {host} nova-compute`"
    );
    warn("ComputeServiceStaysDisabled", &note);
}

/// An operator, or a tool, has enabled the service while the drain runs. `false`: retry later.
pub(super) fn enabled_meanwhile(host: &str, drain: &str) -> bool {
    let note = format!(
        "nova-compute on {host} was enabled, not by Scupper, while {drain} drains it: it may get servers, so the drain waits; disable it again, or cancel this drain"
    );
    warn("ComputeServiceEnabledMeanwhile", &note)
}

/// Nova refuses to begin a migration.
pub(super) fn refused(server: &str, refusal: &str) {
    warn("ServerMigrationFailed", &format!("{server}: {refusal}"));
}

/// The drain is cancelled, and the host was disabled before it began.
pub(super) fn kept_disabled(host: &str, reason: &str) {
    log::info!("nova-compute on {host} stays disabled, as this drain found it: {reason}");
}

/// For people.
pub(super) const fn reason_text(reason: &str) -> &str {
    if reason.is_empty() {
        "no reason given"
    } else {
        reason
    }
}

pub(super) fn enabled(host: &str, drain: &str) {
    let note = format!("nova-compute on {host} is enabled again: {drain}");
    emit("ComputeServiceEnabled", &note);
}

/// Reports what failed since the previous step.
pub(super) fn report_failures(
    cloud: &mut Cloud<'_>,
    snapshot: &Snapshot,
    moves: &Moves,
    decision: &Decision,
    hook_state: &mut HookState,
) {
    for overdue in &decision.overdue {
        at_deadline(overdue, moves);
    }
    let fresh: Vec<(&Server, &Migration)> = snapshot
        .migrations
        .iter()
        .filter(|migration| is_failure(migration, snapshot) && !hook_state.is_reported(migration.id))
        .filter_map(|migration| Some((snapshot.server(&migration.instance_uuid)?, migration)))
        .collect();
    for (server, migration) in fresh.into_iter().take(AT_ONCE) {
        // Its abort was already reported.
        if hook_state.overdue.contains(&migration.id) {
            hook_state.mark_reported(migration.id);
            continue;
        }
        let cause = match migration.status.as_str() {
            "cancelled" => Ok("cancelled, but not by this drain".to_owned()),
            _ => reasons::failed(cloud, &server.id, migration.id, &migration.status_text())
                .and_then(|cause| reasons::explained(cloud, &snapshot.host, cause)),
        };
        // Nova cannot name the cause now; retry in the next step.
        let Ok(cause) = cause else {
            return;
        };
        if !warn("ServerMigrationFailed", &format!("{}: {cause}", server.title())) {
            return;
        }
        hook_state.mark_reported(migration.id);
    }
}

fn is_failure(migration: &Migration, snapshot: &Snapshot) -> bool {
    (migration.is_lost || matches!(migration.status.as_str(), "failed" | "error" | "cancelled"))
        && migration.is_from(&snapshot.host)
        && migration.created() >= snapshot.since
        && snapshot.is_ours(migration, true)
}

fn at_deadline(overdue: &Overdue, moves: &Moves) {
    let Overdue { server, migration } = overdue;
    let note = format!(
        "{server}: migration {migration} has been running for longer than {} s",
        moves.deadline / 1000
    );
    match moves.on_deadline {
        OnDeadline::ForceComplete => warn(
            "ServerMigrationForced",
            &format!("{note} and is forced to complete"),
        ),
        OnDeadline::Abort | OnDeadline::Wait => {
            warn("ServerMigrationAborted", &format!("{note} and is being aborted"))
        }
    };
}

/// The drain was cancelled or failed.
pub(super) fn aborted_after_drain(server: &str, migration: u64) {
    let note = format!("{server}: migration {migration} is being aborted because the drain has ended");
    warn("ServerMigrationAborted", &note);
}

/// The drain was cancelled while nova-compute is silent.
pub(super) fn cannot_abort(host: &str, servers: &str) {
    let note = format!(
        "nova-compute on {host} does not respond, so migrations cannot be aborted and may still end elsewhere: {servers}; it stays disabled until they have ended, or until the uncordon"
    );
    warn("ServerMigrationNotAborted", &note);
}

/// The reason why the hook fails.
pub(super) fn servers_stay(message: &str) {
    warn("ServersLeftBehind", message);
}

/// The servers that stay as configured: some by name, and the number of the others.
pub(super) fn servers_kept(host: &str, left: &[String], more: usize) {
    let all = left.len() + more;
    if all == 0 {
        return;
    }
    let mut named = left.join("; ");
    if more > 0 {
        named.push_str(&format!("; and {more} more"));
    }
    let note = format!(
        "{} {} on {host}, as configured: {named}",
        count(all, "server"),
        if all == 1 { "stays" } else { "stay" },
    );
    emit("ServersLeftBehind", &note);
}

fn emit(reason: &str, note: &str) -> bool {
    let note = events::note(note);
    emitted(reason, &note, events::emit_for_node(reason, &note))
}

fn warn(reason: &str, note: &str) -> bool {
    let note = events::note(note);
    emitted(reason, &note, events::warn_for_node(reason, &note))
}

/// The driver also writes an Event into the drain's report. `false`: retry later.
fn emitted(reason: &str, note: &str, result: Result<(), events::Error>) -> bool {
    match result {
        Ok(()) => true,
        Err(error @ (events::Error::TooMany(_) | events::Error::Unavailable(_))) => {
            log::info!("retrying the Event {reason} later: {error}");
            false
        }
        Err(error) => {
            log::warn!("{note} (no Event {reason}: {error})");
            true
        }
    }
}
