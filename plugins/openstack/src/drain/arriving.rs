//! Finds servers that Nova may have scheduled to the host before it was disabled. No list of the host contains them yet:
//! until a nova-compute accepts it, a new server has no host, and a migration no destination.

use scupper_sdk::Timestamp;

use super::decide::Waiting;
use super::observe;
use crate::cloud::Cloud;
use crate::nova::{Migration, Migrations, Server, Servers, ask, shown};
use crate::step_error::StepError;

/// A nova-compute accepts a server within this time, or the message is lost. Nova keeps the record of a lost one for ever.
const WINDOW: u64 = 300_000;
/// How long a scheduler may still choose a host that was just disabled.
const LAG: u64 = 10_000;

/// The servers that may still arrive, given when the host was disabled. After the window there are none.
pub(super) fn may_come(
    cloud: &mut Cloud<'_>,
    host: &str,
    disabled: Timestamp,
) -> Result<Vec<Waiting>, StepError> {
    if cloud.now() > disabled + WINDOW {
        return Ok(Vec::new());
    }
    let may_come = |at: Timestamp| at + WINDOW >= disabled && at <= disabled + LAG;
    let mut found = Vec::new();
    for path in [ask::building(), ask::unshelving()] {
        let mut servers = Servers::default();
        // The newest come first, so one page is enough.
        servers.take(&cloud.get(&path)?).map_err(unreadable)?;
        let unplaced = servers.0.iter().filter(|server| server.awaits_host());
        found.extend(unplaced.filter(|server| may_come(server.asked_for())).map(server));
    }
    for status in Migration::WITHOUT_DESTINATION {
        let mut migrations = Migrations::default();
        migrations
            .take(&cloud.get(&ask::migrations_in(status))?)
            .map_err(unreadable)?;
        let unplaced = migrations
            .0
            .iter()
            .filter(|migration| !migration.is_from(host) && migration.awaits_destination());
        for migration in unplaced.filter(|migration| may_come(migration.created())) {
            let server = observe::server(cloud, &migration.instance_uuid)?;
            found.push(of_migration(migration, server.as_ref()));
        }
    }
    Ok(found)
}

fn server(server: &Server) -> Waiting {
    Waiting {
        what: server.title(),
        detail: "starting, and Nova has not named its host yet".to_owned(),
        since: Some(server.asked_for()),
    }
}

fn of_migration(migration: &Migration, server: Option<&Server>) -> Waiting {
    let from = migration.source_compute.as_deref().unwrap_or("elsewhere");
    Waiting {
        what: server.map_or_else(|| shown("", &migration.instance_uuid), Server::title),
        detail: format!("migrating from {from}, and Nova has not named the destination yet"),
        since: Some(migration.created()),
    }
}

fn unreadable(error: serde_json::Error) -> StepError {
    StepError::retry(format!(
        "Nova's list of servers being scheduled cannot be read: {error}"
    ))
}
