//! Decides the next operations, from a snapshot and the operator's settings: a pure function.
//!
//! It judges a server by its fields and migrations, never by the status code of a response: after every kind of failure
//! a server is ACTIVE on the source, and an accepted request can still fail.

use scupper_sdk::Timestamp;

use super::observe::Snapshot;
use super::pace::{Pace, pace};
use crate::nova::{Kind, Migration, Server, State, Version};
use crate::settings::{Incoming, Moves, OnDeadline, Order, Others, Stopped};
use crate::state::{HookState, Refusals};

/// Nova may update the server's record this long after the migration has ended.
const JUST_ENDED: u64 = 10_000;
/// Says of a server that its migration begins in this step.
const REQUESTED: &str = "migration requested";
/// A task of Nova usually ends within this time.
const LONG_TASK: u64 = 60_000;

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
    /// The id of the server.
    pub(crate) fn server(&self) -> &str {
        match self {
            Self::Live(id) | Self::Cold(id) | Self::Confirm(id) => id,
            Self::Abort { server, .. } | Self::Force { server, .. } => server,
        }
    }
}

/// Why a server stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StayReason {
    /// Its migrations failed; Nova's records contain the reason.
    Failed { migration: u64, status: String },
    /// Its migration was aborted at the deadline.
    Deadline,
    /// Nova reports its migration as completed, but it is still here.
    CompletedHere { migration: u64 },
    /// Nova refuses to migrate it so.
    Refused(Operation),
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
    /// Nova has refused to begin a migration of this step.
    pub(crate) fn refuse(&mut self, title: &str, detail: String) {
        self.moving = self.moving.saturating_sub(1);
        let mut all = self.waiting.iter_mut();
        if let Some(waiting) = all.find(|on| on.what == title && on.detail == REQUESTED) {
            waiting.detail = detail;
        }
    }

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
        last_candidates: Vec::new(),
    };
    for server in &snapshot.servers {
        judge.server(server, hook_state);
    }
    judge.elsewhere();
    // They are asked for in the order of their ids, so none passes one that has another task now.
    let is_held_up = |server: &&Server| {
        let has_task = matches!(server.state(), State::Busy(_) | State::Unknown);
        has_task && hook_state.is_to_ask_again(&server.id)
    };
    if let Some(first) = snapshot
        .servers
        .iter()
        .filter(is_held_up)
        .map(|server| &server.id)
        .min()
    {
        judge.last_candidates.retain(|(server, _)| server.id < *first);
    }
    judge.begin();
    let active = |id: &u64| {
        let mut all = snapshot.migrations.iter();
        all.any(|migration| migration.id == *id && migration.is_active())
    };
    hook_state.running.retain(|id, _| active(id));
    hook_state.transfers.retain(|id, _| active(id));
    judge.decision
}

struct Decider<'a> {
    snapshot: &'a Snapshot,
    moves: &'a Moves,
    version: Version,
    decision: Decision,
    candidates: Vec<(&'a Server, Operation)>,
    /// Servers for which Nova is to be asked once more, after all other candidates.
    last_candidates: Vec<(&'a Server, Operation)>,
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
            State::Shelved if self.moves.stopped == Stopped::Cold => {
                return self.immovable(server, "shelved");
            }
            State::Shelved => return self.decision.kept.push(format!("{}: shelved", server.title())),
            State::Busy(task) => return self.busy(server, &task),
            State::Unknown => {
                self.decision.present += 1;
                return self.wait(server, "unknown: its cell does not answer Nova".to_owned(), None);
            }
            State::Other(state) => return self.immovable(server, &state),
        };
        self.decision.present += 1;
        self.again(server, operation, hook_state);
    }

    fn immovable(&mut self, server: &Server, state: &str) {
        let state = state_words(server, state);
        if self.moves.others == Others::Ignore {
            self.decision.kept.push(format!("{}: {state}", server.title()));
        } else {
            self.decision.present += 1;
            self.keep_server(server, StayReason::State(state));
        }
    }

    /// Decides whether to migrate a server now, later, or no longer.
    fn again(&mut self, server: &'a Server, operation: Operation, hook_state: &HookState) {
        let attempts = self.snapshot.attempts(&server.id);
        let Refusals(refusals, refused) = hook_state.refusals(&server.id);
        let last = attempts.first();
        if let Some(last) = last
            && let Some(why) = self.has_ended(server, last, hook_state)
        {
            return why.map_or((), |why| self.keep_server(server, why));
        }
        if attempts.is_empty() && hook_state.is_to_ask_again(&server.id) {
            return self.last_candidates.push((server, operation));
        }
        let tries = attempts.len() + refusals;
        // What the newest try ended with, and when.
        let newest = last.filter(|last| last.changed() >= refused);
        if tries >= self.moves.attempts {
            let failed = |last: &&Migration| StayReason::Failed {
                migration: last.id,
                status: last.status_text(),
            };
            let refused = || StayReason::Refused(operation);
            return self.keep_server(server, newest.map_or_else(refused, failed));
        }
        let at = newest.map_or(refused, |last| last.ended(Some(server)));
        let age = self.snapshot.now.saturating_sub(at);
        let pause = self.moves.pause_after(tries);
        if age < pause {
            let what = newest.map_or_else(|| "Nova refused to migrate it".to_owned(), |last| last.describe());
            let detail = format!("{what}; retry in {} s", (pause - age).div_ceil(1000));
            return self.wait(server, detail, Some(at));
        }
        self.candidates.push((server, operation));
    }

    /// Whether the last migration needs no further one: the server is still expected to leave by it, or stays for this reason.
    fn has_ended(
        &mut self,
        server: &Server,
        last: &Migration,
        hook_state: &HookState,
    ) -> Option<Option<StayReason>> {
        if last.has_succeeded() {
            if self.snapshot.now.saturating_sub(last.changed()) < JUST_ENDED {
                self.wait(server, last.describe(), Some(last.created()));
                return Some(None);
            }
            return Some(Some(StayReason::CompletedHere { migration: last.id }));
        }
        let took = last.changed().saturating_sub(last.created());
        let overdue = hook_state.overdue.contains(&last.id)
            || (self.moves.on_deadline == OnDeadline::Abort && took >= self.moves.deadline);
        (last.status == "cancelled" && overdue).then_some(Some(StayReason::Deadline))
    }

    fn under_way(&mut self, server: &Server, migration: &Migration, hook_state: &mut HookState) {
        self.decision.moving += 1;
        let left = migration
            .memory()
            .map_or_else(|| server.size(), |(_, _, left)| left);
        self.decision.memory_left += left;
        let mut words = migration.describe();
        match pace(migration, self.snapshot.now / 1000, hook_state) {
            Pace::Unknown => {}
            Pace::Moves(rate) => {
                self.decision.rate += rate;
                words.push_str(&format!(", {rate} MiB/s"));
            }
            Pace::Stalled(seconds) => words.push_str(&format!(", nothing transferred for {seconds} s")),
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
        let mut words = if server.is_asked_to_move() {
            self.decision.moving += 1;
            "Nova is preparing its migration".to_owned()
        } else {
            format!("waiting for Nova's task {task} to end")
        };
        let since = server.updated();
        if since.is_some_and(|since| self.snapshot.now >= since + LONG_TASK) {
            words.push_str(&format!(
                "; if it never does, see nova-compute's log, then reset it: openstack server set --state active {}",
                server.id
            ));
        }
        self.wait(server, words, since);
    }

    /// Handles servers that are not in the host's list: those that still occupy the host, and those that have left.
    fn elsewhere(&mut self) {
        let host = &self.snapshot.host;
        let mut gone: Vec<&str> = Vec::new();
        for migration in &self.snapshot.migrations {
            let id = migration.instance_uuid.as_str();
            if self.snapshot.has(id) {
                continue;
            }
            if migration.is_to(host) && migration.is_active() {
                self.incoming(migration);
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
                self.away(migration, "migrated, to be confirmed".to_owned());
            } else if migration.is_from(host) && migration.is_active() {
                // The server is already on the destination, but the migration has not ended.
                self.decision.present += 1;
                self.decision.moving += 1;
                self.away(migration, migration.describe());
            }
        }
        self.decision.gone = gone.len();
    }

    fn incoming(&mut self, migration: &Migration) {
        self.away(migration, format!("incoming: {}", migration.describe()));
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
        self.last_candidates.sort_by_key(|(server, _)| &server.id);
        self.candidates.append(&mut self.last_candidates);
        let sizes = self.candidates.iter().map(|(server, _)| server.size());
        self.decision.memory_left += sizes.sum::<u64>();
        let free = self.moves.parallel.saturating_sub(self.decision.moving);
        let mut candidates = std::mem::take(&mut self.candidates);
        let others = candidates.split_off(free.min(candidates.len()));
        for (server, operation) in candidates {
            self.decision.moving += 1;
            self.decision.operations.push(operation);
            self.wait(server, REQUESTED.to_owned(), None);
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

    fn away(&mut self, migration: &Migration, detail: String) {
        self.decision.waiting.push(Waiting {
            what: self.snapshot.title(&migration.instance_uuid),
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

fn state_words(server: &Server, state: &str) -> String {
    match server.fault() {
        Some(fault) => format!("{state}, cannot be migrated ({fault})"),
        None => format!("{state}, cannot be migrated"),
    }
}
