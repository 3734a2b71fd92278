//! Whether an empty host is drained. An empty list is not enough: a live migration may be on its way here, and a
//! resize that is not confirmed has its disk here.

use std::collections::{BTreeMap, BTreeSet};

use scupper_sdk::http::Method;

use super::decide::{Act, Stuck, Waiting, Why};
use super::look::migrations;
use crate::checked::Found;
use crate::cloud::Cloud;
use crate::ledger::Ledger;
use crate::nova::{Migration, Server, Servers, State, Version, ask, shown};
use crate::settings::{Incoming, Moves, Others};
use crate::trouble::Trouble;

/// What is left of a host that has no servers.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) acts: Vec<Act>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) stuck: Vec<Stuck>,
    pub(super) left: Vec<String>,
    pub(super) left_unnamed: usize,
    /// The step may ask no more: so many of so many records are checked.
    pub(super) interrupted: Option<(usize, usize)>,
}

/// The records of one server that may keep the host from being drained.
struct Open {
    newest: Migration,
    unconfirmed: bool,
    records: usize,
}

/// Looks at all migrations there ever were: one of last week may be unconfirmed. Nova keeps the records of servers that
/// are gone, so there may be many more than one step can ask about: the ledger knows which are checked.
pub(super) fn rest(
    cloud: &mut Cloud<'_>,
    host: &str,
    moves: &Moves,
    ledger: &mut Ledger,
) -> Result<Rest, Trouble> {
    let open = open(migrations(cloud, host, None)?, host);
    ledger.checked.keep(|record| open.contains_key(&record));
    let mut rest = Rest::default();
    let mut asked = BTreeSet::new();
    let unchecked = open.range(ledger.checked.to.saturating_add(1)..);
    for (record, one) in unchecked {
        if ledger.checked.is_full() {
            break;
        }
        if !rest.look(cloud, one, moves, ledger)? {
            return Ok(rest.interrupted(&open, ledger));
        }
        asked.insert(*record);
    }
    for record in ledger.checked.again() {
        let Some(one) = open.get(&record).filter(|_| !asked.contains(&record)) else {
            continue;
        };
        if !rest.look(cloud, one, moves, ledger)? {
            return Ok(rest.interrupted(&open, ledger));
        }
    }
    let is_through = open.keys().all(|record| *record <= ledger.checked.to);
    if !is_through && rest.waiting.is_empty() {
        return Ok(rest.interrupted(&open, ledger));
    }
    rest.unnamed(ledger.checked.more, moves);
    Ok(rest)
}

/// By the newest record of each server, the oldest first: one that comes later is checked later.
fn open(migrations: Vec<Migration>, host: &str) -> BTreeMap<u64, Open> {
    let mut of_server: BTreeMap<String, Open> = BTreeMap::new();
    for migration in migrations {
        let incoming = migration.is_to(host) && migration.is_active();
        let unconfirmed = migration.is_from(host) && migration.is_unconfirmed();
        if !incoming && !unconfirmed {
            continue;
        }
        let one = of_server
            .entry(migration.instance_uuid.clone())
            .or_insert_with(|| Open {
                newest: migration.clone(),
                unconfirmed,
                records: 0,
            });
        one.records += 1;
        one.unconfirmed |= unconfirmed;
        if migration.id > one.newest.id {
            one.newest = migration;
        }
    }
    of_server.into_values().map(|one| (one.newest.id, one)).collect()
}

impl Open {
    fn found(&self, server: &Server) -> Found {
        match server.state() {
            State::Unknown | State::Busy(_) => Found::Busy,
            State::Other(state) if state == "resized" && self.unconfirmed => Found::Unconfirmed,
            _ => Found::Nothing,
        }
    }
}

impl Rest {
    fn interrupted(mut self, open: &BTreeMap<u64, Open>, ledger: &Ledger) -> Self {
        let records = |one: &Open| one.records;
        let checked = open.range(..=ledger.checked.to).map(|(_, one)| records(one));
        self.interrupted = Some((checked.sum(), open.values().map(records).sum()));
        self
    }

    /// Nova's records outlive what they are about, so the server itself is asked. `false`: the step may ask no more.
    fn look(
        &mut self,
        cloud: &mut Cloud<'_>,
        open: &Open,
        moves: &Moves,
        ledger: &mut Ledger,
    ) -> Result<bool, Trouble> {
        let id = &open.newest.instance_uuid;
        let answer = match cloud.ask(Method::Get, &ask::server(id), None) {
            Err(Trouble::NextStep) => return Ok(false),
            answer => answer?,
        };
        let server = match answer.status {
            404 => None,
            _ => Some(
                Servers::one(&answer.body)
                    .map_err(|error| Trouble::wait(format!("Nova, {}: {error}", shown("", id))))?,
            ),
        };
        let found = server
            .as_ref()
            .map_or(Found::Nothing, |server| open.found(server));
        let is_named = ledger.checked.note(open.newest.id, found);
        let Some(server) = server else {
            return Ok(true);
        };
        match found {
            Found::Busy => self.busy(&server, &open.newest, moves, cloud.version()?),
            Found::Unconfirmed if is_named => self.unconfirmed(&server, moves),
            Found::Unconfirmed | Found::Nothing => {}
        }
        Ok(true)
    }

    fn busy(&mut self, server: &Server, migration: &Migration, moves: &Moves, version: Version) {
        let is_unknown = server.state() == State::Unknown;
        let incoming = !is_unknown && !migration.is_unconfirmed();
        if incoming && moves.incoming == Incoming::Abort && migration.is_abortable(version) {
            self.acts.push(Act::Abort {
                server: server.id.clone(),
                migration: migration.id,
            });
        }
        self.waiting.push(Waiting {
            what: server.title(),
            detail: if is_unknown {
                "unknown: its cell does not answer Nova".to_owned()
            } else {
                migration.words()
            },
            since: Some(migration.created()),
        });
    }

    fn unconfirmed(&mut self, server: &Server, moves: &Moves) {
        match moves.others {
            Others::Ignore => self
                .left
                .push(format!("{}: its resize is not confirmed", server.title())),
            Others::Fail => self.stuck.push(Stuck {
                id: server.id.clone(),
                title: server.title(),
                why: Why::Unconfirmed,
            }),
        }
    }

    /// Those that the ledger counts and does not name.
    fn unnamed(&mut self, more: usize, moves: &Moves) {
        match moves.others {
            Others::Ignore => self.left_unnamed = more,
            Others::Fail => self.stuck.extend((0..more).map(|_| Stuck {
                id: String::new(),
                title: "one more server".to_owned(),
                why: Why::Unconfirmed,
            })),
        }
    }
}
