//! Confirms that an empty host is drained. An empty list of servers is not enough: a live migration to this host may be
//! in progress, and an unconfirmed resize still has its disk here.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{BlockedServer, Operation, StayReason, Waiting};
use super::observe::{occupying, server};
use crate::checked::Found;
use crate::cloud::Cloud;
use crate::nova::{Migration, Server, State, Version};
use crate::settings::{Incoming, Moves, Others};
use crate::state::HookState;
use crate::step_error::StepError;

/// What still occupies a host without servers.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) operations: Vec<Operation>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) stuck: Vec<BlockedServer>,
    pub(super) kept: Vec<String>,
    pub(super) kept_unnamed: usize,
    /// The step has reached its limit of requests: the numbers of checked and of all records.
    pub(super) interrupted: Option<(usize, usize)>,
}

/// The migration records of one server that may still occupy the host.
struct Open {
    newest: Migration,
    unconfirmed: bool,
    records: usize,
}

/// Checks the migrations of all times, because one of last week may be unconfirmed. Nova keeps the records of deleted
/// servers, so there may be more than one step can check: the hook's state remembers which are checked.
pub(super) fn leftovers(
    cloud: &mut Cloud<'_>,
    host: &str,
    moves: &Moves,
    hook_state: &mut HookState,
) -> Result<Leftovers, StepError> {
    let open = open(occupying(cloud, host, &mut hook_state.many_records)?, host);
    hook_state.checked.keep(|record| open.contains_key(&record));
    let mut leftovers = Leftovers::default();
    let mut asked = BTreeSet::new();
    let unchecked = open.range(hook_state.checked.to.saturating_add(1)..);
    for (record, one) in unchecked {
        if hook_state.checked.is_full() {
            break;
        }
        if !leftovers.check_server(cloud, one, moves, hook_state)? {
            return leftovers.cut_short(&open, hook_state, &asked);
        }
        asked.insert(*record);
    }
    for record in hook_state.checked.again() {
        let Some(one) = open.get(&record).filter(|_| !asked.contains(&record)) else {
            continue;
        };
        if !leftovers.check_server(cloud, one, moves, hook_state)? {
            return leftovers.cut_short(&open, hook_state, &asked);
        }
        asked.insert(record);
    }
    let is_through = open.keys().all(|record| *record <= hook_state.checked.to);
    if !is_through && leftovers.waiting.is_empty() {
        return Ok(leftovers.interrupted(&open, hook_state));
    }
    leftovers.unnamed(hook_state.checked.more, moves);
    Ok(leftovers)
}

/// By the newest record of each server, the oldest first, so that new records come last.
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

impl Leftovers {
    /// The step has reached its limit. If it has asked for no server, its lists alone took so long.
    fn cut_short(
        self,
        open: &BTreeMap<u64, Open>,
        hook_state: &HookState,
        asked: &BTreeSet<u64>,
    ) -> Result<Self, StepError> {
        if asked.is_empty() {
            return Err(StepError::NextStep);
        }
        Ok(self.interrupted(open, hook_state))
    }

    fn interrupted(mut self, open: &BTreeMap<u64, Open>, hook_state: &HookState) -> Self {
        let records = |one: &Open| one.records;
        let checked = open.range(..=hook_state.checked.to).map(|(_, one)| records(one));
        self.interrupted = Some((checked.sum(), open.values().map(records).sum()));
        self
    }

    /// Checks the server itself, because Nova's records outlive servers. `false`: the step has reached its limit of requests.
    fn check_server(
        &mut self,
        cloud: &mut Cloud<'_>,
        open: &Open,
        moves: &Moves,
        hook_state: &mut HookState,
    ) -> Result<bool, StepError> {
        let id = &open.newest.instance_uuid;
        let server = match server(cloud, id) {
            Err(StepError::NextStep) => return Ok(false),
            server => server?,
        };
        let found = server
            .as_ref()
            .map_or(Found::Nothing, |server| open.found(server));
        let is_named = hook_state.checked.note(open.newest.id, found);
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
            self.operations.push(Operation::Abort {
                server: server.id.clone(),
                migration: migration.id,
            });
        }
        self.waiting.push(Waiting {
            what: server.title(),
            detail: if is_unknown {
                "unknown: its cell does not answer Nova".to_owned()
            } else if incoming {
                format!("incoming: {}", migration.describe())
            } else {
                migration.describe()
            },
            since: Some(migration.created()),
        });
    }

    fn unconfirmed(&mut self, server: &Server, moves: &Moves) {
        match moves.others {
            Others::Ignore => self
                .kept
                .push(format!("{}: its resize is not confirmed", server.title())),
            Others::Fail => self.stuck.push(BlockedServer {
                id: server.id.clone(),
                title: server.title(),
                why: StayReason::Unconfirmed,
            }),
        }
    }

    /// The unconfirmed resizes that the hook's state only counts.
    fn unnamed(&mut self, more: usize, moves: &Moves) {
        match moves.others {
            Others::Ignore => self.kept_unnamed = more,
            Others::Fail => self.stuck.extend((0..more).map(|_| BlockedServer {
                id: String::new(),
                title: "one more server".to_owned(),
                why: StayReason::Unconfirmed,
            })),
        }
    }
}
