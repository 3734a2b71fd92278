//! Kubernetes Events of the node: what whoever runs `kubectl describe` wants to know, each once.
//!
//! An Event is worth no drain: where one cannot be emitted, that is logged, and all goes on.

use scupper_sdk::{count, events, log};

use super::decide::{Decision, Overdue};
use super::look::Picture;
use super::reasons;
use crate::cloud::Cloud;
use crate::ledger::Ledger;
use crate::nova::{Migration, Server};
use crate::settings::{Moves, OnDeadline};

/// How many failures one step tells: each costs two requests for Nova's reason, and more come with the next.
const AT_ONCE: usize = 4;

/// `false`: it is worth another try.
pub(super) fn disabled(host: &str, drain: &str) -> bool {
    let note = format!("nova-compute on {host} is disabled for {drain}: no server comes here any more");
    tell("ComputeServiceDisabled", &note)
}

/// It was disabled before the drain began, and not by a drain of this node. `false`: it is worth another try.
pub(super) fn found_disabled(host: &str, reason: &str) -> bool {
    let note = format!(
        "nova-compute on {host} is disabled already: {}; the drain leaves it so, and so does the uncordon",
        given(reason)
    );
    tell("ComputeServiceFoundDisabled", &note)
}

/// The node is given back, and its host is not.
pub(super) fn stays_disabled(host: &str, reason: &str) {
    let note = format!(
        "nova-compute on {host} stays disabled: {}; Scupper did not disable it: `openstack compute service set --enable {host} nova-compute` enables it",
        given(reason)
    );
    warn("ComputeServiceStaysDisabled", &note);
}

/// The drain is cancelled, and its host was disabled before it.
pub(super) fn left_disabled(host: &str, reason: &str) {
    log::info!("nova-compute on {host} stays disabled, as this drain found it: {reason}");
}

const fn given(reason: &str) -> &str {
    if reason.is_empty() {
        "no reason given"
    } else {
        reason
    }
}

pub(super) fn enabled(host: &str, drain: &str) {
    let note = format!("nova-compute on {host} is enabled again: {drain}");
    tell("ComputeServiceEnabled", &note);
}

/// What did not go well since the last step.
pub(super) fn since(
    cloud: &mut Cloud<'_>,
    picture: &Picture,
    moves: &Moves,
    decision: &Decision,
    ledger: &mut Ledger,
) {
    for overdue in &decision.overdue {
        at_deadline(overdue, moves);
    }
    let fresh: Vec<(&Server, &Migration)> = picture
        .migrations
        .iter()
        .filter(|migration| is_failure(migration, picture) && !ledger.is_told(migration.id))
        .filter_map(|migration| Some((picture.server(&migration.instance_uuid)?, migration)))
        .collect();
    for (server, migration) in fresh.into_iter().take(AT_ONCE) {
        // That it was to be aborted has been told.
        if ledger.overdue.contains(&migration.id) {
            ledger.tell(migration.id);
            continue;
        }
        let cause = match migration.status.as_str() {
            "cancelled" => Ok("it was cancelled, and not by this drain".to_owned()),
            status => reasons::failed(cloud, &server.id, migration.id, status),
        };
        // Nova cannot say it now: later.
        let Ok(cause) = cause else {
            return;
        };
        if !warn("ServerMigrationFailed", &format!("{}: {cause}", server.title())) {
            return;
        }
        ledger.tell(migration.id);
    }
}

fn is_failure(migration: &Migration, picture: &Picture) -> bool {
    matches!(migration.status.as_str(), "failed" | "error" | "cancelled")
        && migration.is_from(&picture.host)
        && migration.created() >= picture.since
        && picture.is_ours(migration, true)
}

fn at_deadline(overdue: &Overdue, moves: &Moves) {
    let Overdue { server, migration } = overdue;
    let told = format!(
        "{server}: migration {migration} runs for longer than {} s",
        moves.deadline / 1000
    );
    match moves.on_deadline {
        OnDeadline::ForceComplete => warn(
            "ServerMigrationForced",
            &format!("{told} and is completed by force"),
        ),
        OnDeadline::Abort | OnDeadline::Wait => {
            warn("ServerMigrationAborted", &format!("{told} and is aborted"))
        }
    };
}

/// The drain has ended without being done.
pub(super) fn taken_back(server: &str, migration: u64) {
    let note = format!("{server}: migration {migration} is aborted, as the drain has ended");
    warn("ServerMigrationAborted", &note);
}

/// The hook fails, and this is why.
pub(super) fn stay(message: &str) {
    warn("ServersLeftBehind", message);
}

/// Those stay that the operator wants left alone, and so many more.
pub(super) fn left_alone(host: &str, left: &[String], more: usize) {
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
    tell("ServersLeftBehind", &note);
}

fn tell(reason: &str, note: &str) -> bool {
    let note = events::note(note);
    emitted(reason, &note, events::emit_for_node(reason, &note))
}

fn warn(reason: &str, note: &str) -> bool {
    let note = events::note(note);
    emitted(reason, &note, events::warn_for_node(reason, &note))
}

/// The driver writes an Event into the drain's report as well. `false`: it is worth another try.
fn emitted(reason: &str, note: &str, result: Result<(), events::Error>) -> bool {
    match result {
        Ok(()) => true,
        Err(error @ (events::Error::TooMany(_) | events::Error::Unavailable(_))) => {
            log::info!("the Event {reason} waits: {error}");
            false
        }
        Err(error) => {
            log::warn!("{note} (no Event {reason}: {error})");
            true
        }
    }
}
