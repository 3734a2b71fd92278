//! Whether an empty host is drained. An empty list is not enough: a live migration may be on its way here, and a
//! resize that is not confirmed has its disk here.

use scupper_sdk::http::Method;

use super::decide::{Act, Stuck, Waiting, Why};
use super::look::migrations;
use crate::cloud::Cloud;
use crate::nova::{Migration, Servers, State, ask, shown};
use crate::settings::{Incoming, Moves, Others};
use crate::trouble::Trouble;

/// What is left of a host that has no servers.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) acts: Vec<Act>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) stuck: Vec<Stuck>,
    pub(super) left: Vec<String>,
}

/// Looks at all migrations there ever were: one of last week may be unconfirmed.
pub(super) fn rest(cloud: &mut Cloud<'_>, host: &str, moves: &Moves) -> Result<Rest, Trouble> {
    let mut rest = Rest::default();
    for migration in migrations(cloud, host, None)? {
        let incoming = migration.is_to(host) && migration.is_active();
        let resized = migration.is_from(host) && migration.is_unconfirmed();
        if incoming || resized {
            one(cloud, &migration, moves, &mut rest)?;
        }
    }
    Ok(rest)
}

/// Nova's records outlive what they are about, so the server itself is asked.
fn one(cloud: &mut Cloud<'_>, migration: &Migration, moves: &Moves, rest: &mut Rest) -> Result<(), Trouble> {
    let id = &migration.instance_uuid;
    let answer = cloud.ask(Method::Get, &ask::server(id), None)?;
    if answer.status == 404 {
        return Ok(());
    }
    let server = Servers::one(&answer.body)
        .map_err(|error| Trouble::wait(format!("Nova, {}: {error}", shown("", id))))?;
    match server.state() {
        State::Unknown => rest.waiting.push(Waiting {
            what: server.title(),
            detail: "unknown: its cell does not answer Nova".to_owned(),
            since: None,
        }),
        State::Busy(_) => {
            let incoming = !migration.is_unconfirmed();
            if incoming && moves.incoming == Incoming::Abort && migration.is_abortable(cloud.version()?) {
                rest.acts.push(Act::Abort {
                    server: id.clone(),
                    migration: migration.id,
                });
            }
            rest.waiting.push(Waiting {
                what: server.title(),
                detail: migration.words(),
                since: Some(migration.created()),
            });
        }
        State::Other(state) if state == "resized" && migration.is_unconfirmed() => match moves.others {
            Others::Ignore => rest
                .left
                .push(format!("{}: its resize is not confirmed", server.title())),
            Others::Fail => rest.stuck.push(Stuck {
                id: server.id.clone(),
                title: server.title(),
                why: Why::Unconfirmed,
            }),
        },
        _ => {}
    }
    Ok(())
}
