//! Doing what was decided. An answer is no result: what came of it is seen at the next look.

use scupper_sdk::http::Method;
use scupper_sdk::log;
use serde_json::Value;

use super::decide::Operation;
use super::observe::Snapshot;
use crate::cloud::{Answer, Cloud};
use crate::nova::{Migrations, Servers, State, ask, shown};
use crate::state::HookState;
use crate::step_error::StepError;

/// Does one thing.
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
            refused_softly("confirming the move of", server, &answer);
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

/// Begins a migration. When Nova does not, the server's own fields say whether that passes: the code of the answer is
/// the same for both.
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
    // Whatever it is now, the next look sees it; refused is what could be moved and is not.
    if matches!(now.state(), State::Live | State::Stopped) {
        hook_state.count_refusal(server);
        log::warn!(
            "Nova does not begin to move {}: {} {}",
            now.title(),
            answer.status,
            answer.message
        );
    }
    Ok(())
}

/// Migrations were listed before servers. One that was recorded and has failed in between is in neither list: the
/// server looks as if nothing had been tried.
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

/// It may have ended by itself in the meantime.
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
