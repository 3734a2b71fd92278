//! Carries out operations. A response is not a result: the next observation shows the effect.

use scupper_sdk::http::Method;
use scupper_sdk::log;
use serde_json::Value;

use super::decide::Operation;
use super::observe::{Snapshot, server};
use crate::cloud::{Answer, Cloud};
use crate::nova::{Migrations, State, ask};
use crate::state::HookState;
use crate::step_error::StepError;

/// Carries out one operation. Returns why Nova refuses to begin a migration.
pub(super) fn apply(
    cloud: &mut Cloud<'_>,
    snapshot: &Snapshot,
    operation: &Operation,
    hook_state: &mut HookState,
) -> Result<Option<String>, StepError> {
    let (what, server, method, path, body) = match operation {
        Operation::Live(server) => return begin(cloud, snapshot, server, &ask::live(), hook_state),
        Operation::Cold(server) => return begin(cloud, snapshot, server, &ask::cold(), hook_state),
        Operation::Confirm(server) => (
            "confirming the cold migration",
            server,
            Method::Post,
            ask::action(server),
            Some(ask::confirm()),
        ),
        Operation::Abort { server, migration } => (
            "aborting the migration",
            server,
            Method::Delete,
            ask::server_migration(server, *migration),
            None,
        ),
        Operation::Force { server, migration } => (
            "completing the migration by force",
            server,
            Method::Post,
            ask::server_migration_action(server, *migration),
            Some(ask::force()),
        ),
    };
    let what = format!("{what} of {}", snapshot.title(server));
    let answer = cloud
        .ask(method, &path, body.as_ref())
        .map_err(|error| error.during(&what))?;
    // The migration may have ended meanwhile.
    if !answer.is_success() {
        log::info!("{what}: {}", words(&answer));
    }
    Ok(None)
}

/// Begins a migration. If Nova refuses, the server's fields say whether a retry can succeed; the status code does not.
fn begin(
    cloud: &mut Cloud<'_>,
    snapshot: &Snapshot,
    id: &str,
    body: &Value,
    hook_state: &mut HookState,
) -> Result<Option<String>, StepError> {
    if is_overtaken(cloud, snapshot, id)? {
        return Ok(None);
    }
    let what = format!("requesting the migration of {}", snapshot.title(id));
    let answer = cloud
        .ask(Method::Post, &ask::action(id), Some(body))
        .map_err(|error| error.during(&what))?;
    if answer.is_success() {
        hook_state.forget_refusals(id);
        return Ok(None);
    }
    let now = if answer.status == 404 {
        None
    } else {
        server(cloud, id)?
    };
    // A refusal counts only if the server could be migrated; any other state shows in the next observation.
    let could = now.is_some_and(|now| matches!(now.state(), State::Live | State::Stopped));
    if !could {
        return Ok(None);
    }
    hook_state.count_refusal(id, cloud.now());
    Ok(Some(format!("Nova refuses to migrate it: {}", words(&answer))))
}

fn words(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.message)
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
