//! Why servers stay, with the reason that Nova gives, if any.

use scupper_sdk::count;
use scupper_sdk::http::Method;

use super::decide::{BlockedServer, Operation, StayReason};
use super::observe::compute_services;
use super::preflight;
use crate::cloud::Cloud;
use crate::nova::{ask, cause, newest};
use crate::state::HookState;
use crate::step_error::StepError;

/// The most servers to name with their reasons: each costs two requests.
const NAMED: usize = 8;
/// Nova's words if its scheduler finds no host.
const NO_HOST: &str = "No valid host";
/// The longest reason in the message.
const SHOWN: usize = 240;

/// One line about all that stay.
pub(super) fn stay_message(
    cloud: &mut Cloud<'_>,
    host: &str,
    all: usize,
    stuck: &[BlockedServer],
    hook_state: &mut HookState,
) -> Result<String, StepError> {
    let mut lines = Vec::new();
    for server in stuck.iter().take(NAMED) {
        let Some(words) = reason_text(cloud, server, hook_state)? else {
            return Err(StepError::retry(format!("Nova now migrates {}", server.title)));
        };
        lines.push(format!(
            "{}: {}",
            server.title,
            words.chars().take(SHOWN).collect::<String>()
        ));
    }
    if stuck.len() > NAMED {
        lines.push(format!("and {} more", stuck.len() - NAMED));
    }
    let all = all.max(stuck.len());
    let message = format!(
        "{} of {} {} on {host}: {}",
        stuck.len(),
        count(all, "server"),
        if all == 1 { "stays" } else { "stay" },
        lines.join("; ")
    );
    explained(cloud, host, message)
}

/// Adds what keeps the other hosts from taking servers, if Nova's scheduler found none.
pub(super) fn explained(cloud: &mut Cloud<'_>, host: &str, message: String) -> Result<String, StepError> {
    if !message.contains(NO_HOST) {
        return Ok(message);
    }
    let all = compute_services(cloud, None)?;
    let message = message.trim_end_matches('.');
    Ok(format!("{message}; {}", preflight::others(&all, host)))
}

/// Why a server stays, as far as it is known without a request: for people, while others still leave.
pub(super) fn known(why: &StayReason) -> String {
    match why {
        StayReason::Failed { migration, status } => {
            format!(
                "its last attempt, migration {migration}, is {status}; see the Event ServerMigrationFailed"
            )
        }
        StayReason::Refused(_) => {
            "Nova refuses to migrate it; see the Event ServerMigrationFailed".to_owned()
        }
        StayReason::Deadline => "its live migration was aborted at its deadline".to_owned(),
        StayReason::CompletedHere { migration } => format!(
            "Nova reports migration {migration} as completed, but the server is still here; check it by hand"
        ),
        StayReason::State(state) => state.clone(),
        StayReason::Unconfirmed => {
            "its resize to another host is not confirmed, so its disk is still here".to_owned()
        }
    }
}

fn reason_text(
    cloud: &mut Cloud<'_>,
    server: &BlockedServer,
    hook_state: &mut HookState,
) -> Result<Option<String>, StepError> {
    Ok(Some(match &server.why {
        StayReason::Failed { migration, status } => failed(cloud, &server.id, *migration, status)?,
        StayReason::Refused(operation) => return refused(cloud, operation, hook_state),
        known => self::known(known),
    }))
}

/// The cause of a failed migration. If no event has failed, only the migration itself shows the failure.
pub(super) fn failed(
    cloud: &mut Cloud<'_>,
    id: &str,
    migration: u64,
    status: &str,
) -> Result<String, StepError> {
    let silent = |request: Option<&str>| {
        let where_to = request.map_or_else(String::new, |request| format!(", request {request}"));
        format!(
            "migration {migration} is {status}, and Nova records no cause: see nova-compute's log{where_to}"
        )
    };
    let actions = cloud.ask(Method::Get, &ask::actions(id), None)?;
    if actions.status == 404 {
        return Ok("is gone".to_owned());
    }
    let Some(request) = newest(&actions.body) else {
        return Ok(silent(None));
    };
    let action = cloud.ask(Method::Get, &ask::one_action(id, &request), None)?;
    Ok(cause(&action.body).unwrap_or_else(|| silent(Some(&request))))
}

/// Repeats a refused request, to get Nova's current reason.
fn refused(
    cloud: &mut Cloud<'_>,
    operation: &Operation,
    hook_state: &mut HookState,
) -> Result<Option<String>, StepError> {
    let server = operation.server();
    let body = match operation {
        Operation::Cold(_) => ask::cold(),
        _ => ask::live(),
    };
    let answer = cloud.ask(Method::Post, &ask::action(server), Some(&body))?;
    if answer.is_success() {
        hook_state.forget_refusals(server);
        return Ok(None);
    }
    Ok(Some(format!(
        "Nova refuses to migrate it: {} {}",
        answer.status, answer.message
    )))
}
