//! Servers that Nova may have sent to the host before it was disabled, and that are on none of its lists yet: until a
//! nova-compute takes it, a server that is built has no host, and a migration no destination.

use scupper_sdk::Timestamp;

use super::decide::Waiting;
use crate::cloud::Cloud;
use crate::nova::{Migration, Migrations, Server, Servers, ask, shown};
use crate::step_error::StepError;

/// A nova-compute takes what it was sent within this, or its message is lost. Nova keeps what was lost for ever.
const WINDOW: u64 = 300_000;
/// For so long a scheduler may choose a host that has just been disabled.
const LAG: u64 = 10_000;

/// Those that may still come, by the time at which the host was disabled. Later on there are none.
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
        // The newest come first: one page of them is enough.
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
        found.extend(
            unplaced
                .filter(|migration| may_come(migration.created()))
                .map(migration),
        );
    }
    Ok(found)
}

fn server(server: &Server) -> Waiting {
    Waiting {
        what: server.title(),
        detail: "is being started, and Nova does not say yet on which host".to_owned(),
        since: Some(server.asked_for()),
    }
}

fn migration(migration: &Migration) -> Waiting {
    let from = migration.source_compute.as_deref().unwrap_or("elsewhere");
    Waiting {
        what: shown("", &migration.instance_uuid),
        detail: format!("is migrated away from {from}, and Nova does not say yet to which host"),
        since: Some(migration.created()),
    }
}

fn unreadable(error: serde_json::Error) -> StepError {
    StepError::retry(format!("Nova's list of what it places cannot be read: {error}"))
}
