//! Decides the next operations, from a snapshot and the operator's settings: a pure function.
//!
//! It judges a server by its fields and migrations, never by the status code of a response: after every kind of failure
//! a server is ACTIVE on the source, and an accepted request can still fail.

use scupper_sdk::Timestamp;

use super::observe::Snapshot;
use crate::nova::{Kind, Migration, Server, State, Version, shown};
use crate::settings::{Incoming, Moves, OnDeadline, Order, Others, Stopped};
use crate::state::HookState;

/// Nova may update the server's record this long after the migration has ended.
const JUST_ENDED: u64 = 10_000;

/// A change to request from Nova.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Live(String),
    Cold(String),
    Confirm(String),
    Abort { server: String, migration: u64 },
    Force { server: String, migration: u64 },
}

impl Operation {
    /// Whether it begins a migration of this server.
    fn begins(&self, server: &str) -> bool {
        matches!(self, Self::Live(id) | Self::Cold(id) if id == server)
    }
}

/// StayReason a server stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StayReason {
    /// Its migrations failed; Nova's records contain the reason.
    Failed { migration: u64, status: String },
    /// Its migration was aborted at the deadline.
    Deadline,
    /// Nova reports its migration as completed, but it is still here.
    CompletedHere { migration: u64 },
    /// Nova refuses to migrate it.
    Refused,
    /// Its state does not allow a migration.
    State(String),
    /// The resize is not confirmed, so its disk is still here.
    Unconfirmed,
}

/// Something that the drain waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) what: String,
    pub(crate) detail: String,
    pub(crate) since: Option<Timestamp>,
}

/// A server that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockedServer {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) why: StayReason,
}

/// A migration that has just exceeded its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overdue {
    pub(crate) server: String,
    pub(crate) migration: u64,
}

/// The decision on a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    pub(crate) operations: Vec<Operation>,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) stuck: Vec<BlockedServer>,
    pub(crate) overdue: Vec<Overdue>,
    /// Servers that stay as configured.
    pub(crate) kept: Vec<String>,
    /// The number of servers that still have to leave.
    pub(crate) present: usize,
    /// The number of servers that have left since the drain began.
    pub(crate) gone: usize,
    pub(crate) moving: usize,
    /// The memory in MiB of the servers that still have to leave and can.
    pub(crate) memory_left: u64,
    /// MiB per second, of the migrations with a known rate.
    pub(crate) rate: u64,
}

impl Decision {
    /// Nothing is migrating, and nothing is to be migrated.
    pub(crate) fn is_quiet(&self) -> bool {
        self.operations.is_empty() && self.waiting.is_empty() && self.moving == 0
    }
}

/// Decides, and saves in the hook's state since when each migration runs.
pub(crate) fn decide(
    snapshot: &Snapshot,
    moves: &Moves,
    version: Version,
    hook_state: &mut HookState,
) -> Decision {
    let mut judge = Decider {
        snapshot,
        moves,
        version,
        decision: Decision::default(),
        candidates: Vec::new(),
    };
    for server in &snapshot.servers {
        judge.server(server, hook_state);
    }
    judge.elsewhere(hook_state);
    judge.begin();
    hook_state.remember_names(judge.moving());
    let active = |id: &u64| {
        let mut all = snapshot.migrations.iter();
        all.any(|migration| migration.id == *id && migration.is_active())
    };
    hook_state.running.retain(|id, _| active(id));
    hook_state.begun.retain(|id, _| active(id));
    judge.decision
}

struct Decider<'a> {
    snapshot: &'a Snapshot,
    moves: &'a Moves,
    version: Version,
    decision: Decision,
    candidates: Vec<(&'a Server, Operation)>,
}

impl<'a> Decider<'a> {
    fn server(&mut self, server: &'a Server, hook_state: &mut HookState) {
        let host = &self.snapshot.host;
        let of = self.snapshot.migrations_of(&server.id);
        if let Some(migration) = of
            .iter()
            .find(|migration| migration.is_active() && migration.is_from(host))
        {
            self.decision.present += 1;
            self.under_way(server, migration, hook_state);
            return;
        }
        let operation = match server.state() {
            State::Live => Operation::Live(server.id.clone()),
            State::Stopped if self.moves.stopped == Stopped::Cold => Operation::Cold(server.id.clone()),
            State::Stopped => return self.decision.kept.push(format!("{}: shut off", server.title())),
            State::Busy(task) => return self.busy(server, &task),
            State::Unknown => {
                self.decision.present += 1;
                return self.wait(server, "unknown: its cell does not answer Nova".to_owned(), None);
            }
            State::Other(state) => {
                let state = state_words(server, &state);
                return if self.moves.others == Others::Ignore {
                    self.decision.kept.push(format!("{}: {state}", server.title()));
                } else {
                    self.decision.present += 1;
                    self.keep_server(server, StayReason::State(state));
                };
            }
        };
        self.decision.present += 1;
        // A server that returned to this host starts again.
        let back = of
            .iter()
            .filter(|migration| migration.is_to(host) && migration.has_succeeded());
        let back = back.map(|migration| migration.created()).max();
        let attempts: Vec<&Migration> = of
            .into_iter()
            .filter(|migration| migration.is_from(host) && Some(migration.created()) > back)
            .collect();
        self.again(server, &attempts, operation, hook_state);
    }

    /// Decides whether to migrate a server now, later, or no longer.
    fn again(
        &mut self,
        server: &'a Server,
        attempts: &[&Migration],
        operation: Operation,
        hook_state: &HookState,
    ) {
        let refusals = usize::try_from(hook_state.refusals(&server.id)).unwrap_or(usize::MAX);
        let Some(last) = attempts.first() else {
            return if refusals >= self.moves.attempts {
                self.keep_server(server, StayReason::Refused);
            } else {
                self.candidates.push((server, operation));
            };
        };
        let age = self.snapshot.now.saturating_sub(last.changed());
        if last.has_succeeded() {
            return if age < JUST_ENDED {
                self.wait(server, last.describe(), Some(last.created()));
            } else {
                self.keep_server(server, StayReason::CompletedHere { migration: last.id });
            };
        }
        let took = last.changed().saturating_sub(last.created());
        let overdue = hook_state.overdue.contains(&last.id)
            || (self.moves.on_deadline == OnDeadline::Abort && took >= self.moves.deadline);
        if last.status == "cancelled" && overdue {
            return self.keep_server(server, StayReason::Deadline);
        }
        if attempts.len() + refusals >= self.moves.attempts {
            let why = StayReason::Failed {
                migration: last.id,
                status: last.status.clone(),
            };
            return self.keep_server(server, why);
        }
        let doublings = u32::try_from(attempts.len() - 1).unwrap_or(u32::MAX).min(10);
        let pause = self.moves.retry_after.saturating_mul(1 << doublings);
        if age < pause {
            let detail = format!("{}; retry in {} s", last.describe(), (pause - age).div_ceil(1000));
            return self.wait(server, detail, Some(last.changed()));
        }
        self.candidates.push((server, operation));
    }

    fn under_way(&mut self, server: &Server, migration: &Migration, hook_state: &mut HookState) {
        self.decision.moving += 1;
        let left = migration
            .memory()
            .map_or_else(|| server.size(), |(_, _, left)| left);
        self.decision.memory_left += left;
        let mut words = migration.describe();
        let rate = rate(migration, hook_state);
        if let Some(rate) = rate {
            self.decision.rate += rate;
            words.push_str(&format!(", {rate} MiB/s"));
        }
        self.wait(server, words, Some(migration.created()));
        if migration.status != "running" || migration.kind() != Kind::Live {
            return;
        }
        let since = *hook_state
            .running
            .entry(migration.id)
            .or_insert(self.snapshot.now);
        if self.snapshot.now.saturating_sub(since) < self.moves.deadline {
            return;
        }
        if self.moves.on_deadline == OnDeadline::Wait {
            return;
        }
        let (title, server, migration) = (server.title(), server.id.clone(), migration.id);
        let is_news = hook_state.overdue.insert(migration);
        if is_news {
            self.decision.overdue.push(Overdue {
                server: title,
                migration,
            });
        }
        match self.moves.on_deadline {
            // Repeated until it works, because Nova does not report an abort that fails.
            OnDeadline::Abort => self
                .decision
                .operations
                .push(Operation::Abort { server, migration }),
            OnDeadline::ForceComplete if is_news => {
                self.decision
                    .operations
                    .push(Operation::Force { server, migration });
            }
            OnDeadline::ForceComplete | OnDeadline::Wait => {}
        }
    }

    fn busy(&mut self, server: &Server, task: &str) {
        self.decision.present += 1;
        self.decision.memory_left += server.size();
        let words = if server.is_asked_to_move() {
            self.decision.moving += 1;
            "Nova is preparing its migration".to_owned()
        } else {
            format!("waiting for Nova's task {task} to end")
        };
        self.wait(server, words, None);
    }

    /// Handles servers that are not in the host's list: those that still occupy the host, and those that have left.
    fn elsewhere(&mut self, hook_state: &HookState) {
        let host = &self.snapshot.host;
        let mut gone: Vec<&str> = Vec::new();
        for migration in &self.snapshot.migrations {
            let id = migration.instance_uuid.as_str();
            if self.snapshot.has(id) {
                continue;
            }
            if migration.is_to(host) && migration.is_active() {
                self.incoming(migration, hook_state);
            } else if migration.is_from(host) && migration.has_succeeded() && !gone.contains(&id) {
                gone.push(id);
            }
            let began_here = migration.created() >= self.snapshot.since && migration.kind() == Kind::Cold;
            let ours = began_here && self.snapshot.is_ours(migration, true);
            if migration.is_from(host)
                && migration.is_unconfirmed()
                && ours
                && self.moves.stopped == Stopped::Cold
            {
                self.decision.operations.push(Operation::Confirm(id.to_owned()));
                self.away(migration, "migrated, to be confirmed".to_owned(), hook_state);
            } else if migration.is_from(host) && migration.is_active() {
                // The server is already on the destination, but the migration has not ended.
                self.decision.present += 1;
                self.decision.moving += 1;
                self.away(migration, migration.describe(), hook_state);
            }
        }
        self.decision.gone = gone.len();
    }

    fn incoming(&mut self, migration: &Migration, hook_state: &HookState) {
        self.away(
            migration,
            format!("incoming: {}", migration.describe()),
            hook_state,
        );
        if self.moves.incoming == Incoming::Abort && migration.is_abortable(self.version) {
            self.decision.operations.push(Operation::Abort {
                server: migration.instance_uuid.clone(),
                migration: migration.id,
            });
        }
    }

    /// Begins migrations up to the configured number.
    fn begin(&mut self) {
        let order = self.moves.order;
        self.candidates.sort_by_key(|(server, _)| {
            let size = match order {
                Order::LargestFirst => u64::MAX - server.size(),
                Order::SmallestFirst => server.size(),
                Order::Name => 0,
            };
            (size, server.name.clone(), server.id.clone())
        });
        let sizes = self.candidates.iter().map(|(server, _)| server.size());
        self.decision.memory_left += sizes.sum::<u64>();
        let free = self.moves.parallel.saturating_sub(self.decision.moving);
        let mut candidates = std::mem::take(&mut self.candidates);
        let others = candidates.split_off(free.min(candidates.len()));
        for (server, operation) in candidates {
            self.decision.moving += 1;
            self.decision.operations.push(operation);
            self.wait(server, "migration requested".to_owned(), None);
        }
        match others.as_slice() {
            [] => {}
            [(server, _)] => self.wait(server, "queued".to_owned(), None),
            // The migrations matter to people; for queued servers a number is enough.
            _ => self.decision.waiting.push(Waiting {
                what: format!("{} more servers", others.len()),
                detail: "queued".to_owned(),
                since: None,
            }),
        }
    }

    fn wait(&mut self, server: &Server, detail: String, since: Option<Timestamp>) {
        self.decision.waiting.push(Waiting {
            what: server.title(),
            detail,
            since,
        });
    }

    /// Servers that migrate, or will migrate after this step, with their names if known.
    fn moving(&self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let snapshot = self.snapshot;
        let name = |id: &str| snapshot.server(id).map(|server| server.name.as_str());
        let under_way = snapshot.migrations.iter();
        let under_way = under_way.filter(|migration| migration.is_active() || migration.is_unconfirmed());
        let under_way = under_way.map(move |migration| {
            let id = migration.instance_uuid.as_str();
            (id, name(id))
        });
        let asked: Vec<_> = snapshot
            .servers
            .iter()
            .filter(|server| {
                self.decision
                    .operations
                    .iter()
                    .any(|operation| operation.begins(&server.id))
            })
            .map(|server| (server.id.as_str(), Some(server.name.as_str())))
            .collect();
        under_way.chain(asked)
    }

    fn away(&mut self, migration: &Migration, detail: String, hook_state: &HookState) {
        let id = &migration.instance_uuid;
        self.decision.waiting.push(Waiting {
            what: shown(hook_state.name(id), id),
            detail,
            since: Some(migration.created()),
        });
    }

    fn keep_server(&mut self, server: &Server, why: StayReason) {
        self.decision.stuck.push(BlockedServer {
            id: server.id.clone(),
            title: server.title(),
            why,
        });
    }
}

/// MiB per second since the migration was first seen running, by the times in Nova's record.
fn rate(migration: &Migration, hook_state: &mut HookState) -> Option<u64> {
    if migration.status != "running" || migration.kind() != Kind::Live {
        return None;
    }
    let moved = migration.memory().map_or(0, |(_, moved, _)| moved);
    let at = migration.changed() / 1000;
    let (since, first) = *hook_state.begun.entry(migration.id).or_insert((at, moved));
    let seconds = at.checked_sub(since).filter(|seconds| *seconds > 0)?;
    Some(moved.saturating_sub(first) / seconds)
}

fn state_words(server: &Server, state: &str) -> String {
    match server.fault() {
        Some(fault) => format!("{state}, cannot be migrated ({fault})"),
        None => format!("{state}, cannot be migrated"),
    }
}
