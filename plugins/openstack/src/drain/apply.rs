//! Carries out operations. A response is not a result: the next observation shows the effect.

use scupper_sdk::http::Method;
use scupper_sdk::log;
use serde_json::Value;

use super::decide::Operation;
use super::observe::Snapshot;
use crate::cloud::{Answer, Cloud};
use crate::nova::{Migrations, Servers, State, ask, shown};
use crate::state::HookState;
use crate::step_error::StepError;

/// Carries out one operation.
pub(super) fn apply(
    cloud: &mut Cloud<'_>,
    snapshot: &Snapshot,
    operation: &Operation,
    hook_state: &mut HookState,
) -> Result<(), StepError> {
    match operation {
        Operation::Live(server) => begin(cloud, snapshot, server, &ask::live(), hook_state),
        Operation::Cold(server) => begin(cloud, snapshot, server, &ask::cold(), hook_state),
        Operation::Confirm(server) => {
            let answer = cloud.ask(Method::Post, &ask::action(server), Some(&ask::confirm()))?;
            refused_softly("confirming the cold migration of", server, &answer);
            Ok(())
        }
        Operation::Abort { server, migration } => {
            let path = ask::server_migration(server, *migration);
            let answer = cloud.ask(Method::Delete, &path, None)?;
            refused_softly("aborting the migration of", server, &answer);
            Ok(())
        }
        Operation::Force { server, migration } => {
            let path = ask::server_migration_action(server, *migration);
            let answer = cloud.ask(Method::Post, &path, Some(&ask::force()))?;
            refused_softly("completing by force the migration of", server, &answer);
            Ok(())
        }
    }
}

/// Begins a migration. If Nova refuses, the server's fields say whether a retry can succeed; the status code does not.
fn begin(
    cloud: &mut Cloud<'_>,
    snapshot: &Snapshot,
    server: &str,
    body: &Value,
    hook_state: &mut HookState,
) -> Result<(), StepError> {
    if is_overtaken(cloud, snapshot, server)? {
        return Ok(());
    }
    let answer = cloud.ask(Method::Post, &ask::action(server), Some(body))?;
    if answer.is_success() {
        hook_state.forget_refusals(server);
        return Ok(());
    }
    if answer.status == 404 {
        return Ok(());
    }
    let again = cloud.ask(Method::Get, &ask::server(server), None)?;
    if !again.is_success() {
        return Ok(());
    }
    let now =
        Servers::one(&again.body).map_err(|error| StepError::retry(format!("Nova, a server: {error}")))?;
    // A refusal counts only if the server could be migrated; any other state shows in the next observation.
    if matches!(now.state(), State::Live | State::Stopped) {
        hook_state.count_refusal(server);
        log::warn!(
            "Nova refuses to migrate {}: {} {}",
            now.title(),
            answer.status,
            answer.message
        );
    }
    Ok(())
}

/// Whether a migration was recorded and failed between the lists of migrations and of servers. It is in neither list, so
/// the server looks as if no migration had been tried.
fn is_overtaken(cloud: &mut Cloud<'_>, snapshot: &Snapshot, server: &str) -> Result<bool, StepError> {
    let mut now = Migrations::default();
    let answer = cloud.ask(Method::Get, &ask::migrations_of(server), None)?;
    if now.take(&answer.body).is_err() {
        return Ok(true);
    }
    let known = snapshot.migrations_of(server);
    let is_new = |id: u64| known.iter().all(|migration| migration.id != id);
    Ok(now.0.iter().any(|migration| {
        migration.instance_uuid == server && migration.changed() >= snapshot.since && is_new(migration.id)
    }))
}

/// Logs a refusal that may only mean that the migration has ended meanwhile.
fn refused_softly(what: &str, server: &str, answer: &Answer) {
    if !answer.is_success() {
        log::info!(
            "{what} {}: {} {}",
            shown("", server),
            answer.status,
            answer.message
        );
    }
}
