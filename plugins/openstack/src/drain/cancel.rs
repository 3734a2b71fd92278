//! Cancels a drain: aborts the migrations in progress and, if configured, enables the service again. Migrated servers stay
//! where they are.
//!
//! A migration is in progress from the request on, even before Nova has recorded it.

use std::time::Duration;

use scupper_sdk::http::Method;
use scupper_sdk::mark::Mark;
use scupper_sdk::{Call, Outcome, Pending, Timestamp, count, log};

use super::apply::apply;
use super::decide::Operation;
use super::observe::{Snapshot, compute_services};
use super::{enable, node_events, preflight};
use crate::cloud::Cloud;
use crate::nova::{Asked, Kind, Migration, Server, Service, State, Version, ask, asked_to_move};
use crate::settings::{Settings, Stopped};
use crate::state::HookState;
use crate::step_error::StepError;

/// Short, because a cancel has only 15 s.
const POLL: Duration = Duration::from_secs(1);
/// A migration request with a lost response takes effect within this time.
const LATE: Duration = Duration::from_secs(2);

/// The migrations to abort or to await before the service is enabled.
struct UnderWay<'p> {
    migrations: Vec<&'p Migration>,
    /// Requests that Nova has accepted without recording a migration yet.
    unrecorded: Vec<&'p Server>,
}

/// One step.
pub(crate) fn cancel(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
) -> Result<Outcome, StepError> {
    let mark = Mark::of_drain(call, settings.cluster())?;
    let all = compute_services(cloud, None)?;
    // An earlier drain may have left its mark on another host.
    let is_own = |service: &&Service| !service.is_enabled() && mark.is_of_drain(service.reason());
    let own = all.iter().find(is_own);
    let service = match own.map_or_else(|| settings.mapping.find(&call.node, &all), Ok) {
        Ok(service) => service,
        // A host that Nova does not know was never changed.
        Err(words) => {
            log::debug!("nothing to undo: {words}");
            return Ok(Outcome::Done);
        }
    };
    let (host, down) = (&service.host, !service.is_up());
    // What arrives does not matter to a cancel.
    let since_the_drain = &mut Some(Timestamp::MAX);
    let snapshot = Snapshot::take(cloud, host, call.drain.started, since_the_drain)?;
    let marked = !service.is_enabled() && mark.is_of_node(service.reason());
    let under_way = UnderWay::find(cloud, &snapshot, marked)?;
    if down && !under_way.is_empty() {
        return Ok(under_way.of_silent_host(&snapshot, hook_state).into());
    }
    if !under_way.is_empty() {
        hook_state.cancel_checked = true;
        return stop(settings, hook_state, cloud, &snapshot, &under_way);
    }
    if !down && !hook_state.cancel_checked && snapshot.servers.iter().any(|server| moves(server, settings)) {
        hook_state.cancel_checked = true;
        let progress = format!("checking once more that no migration from {host} begins");
        return Ok(Outcome::pending(progress).again_after(LATE).into());
    }
    match own {
        Some(own) if settings.on_failure.undoes(call.drain.held) => enable::put(call, own, cloud)?,
        // If the hook fails, Scupper reports that until an uncordon has enabled it.
        Some(_) if !call.drain.held => {
            cloud.logout();
            let words = format!("nova-compute on {host} stays disabled, as configured (`on-failure: keep`)");
            return Ok(Outcome::failed(words).into());
        }
        None if !service.is_enabled() => node_events::kept_disabled(host, service.reason()),
        _ => {}
    }
    Ok(Outcome::Done)
}

/// Whether this drain may have requested a migration of the server.
fn moves(server: &Server, settings: &Settings) -> bool {
    match server.state() {
        State::Live => true,
        State::Stopped => settings.moves.stopped == Stopped::Cold,
        State::Busy(_) | State::Shelved | State::Other(_) | State::Unknown => false,
    }
}

impl<'p> UnderWay<'p> {
    fn find(cloud: &mut Cloud<'_>, snapshot: &'p Snapshot, marked: bool) -> Result<Self, StepError> {
        let migrations: Vec<&Migration> = snapshot
            .migrations
            .iter()
            .filter(|migration| migration.is_from(&snapshot.host) && snapshot.is_ours(migration, marked))
            .filter(|migration| migration.kind() != Kind::Other && is_open(migration, snapshot))
            .collect();
        let mut unrecorded = Vec::new();
        for server in snapshot.servers.iter().filter(|server| server.is_asked_to_move()) {
            let recorded = snapshot.migrations_of(&server.id);
            if recorded.iter().any(|migration| migration.is_active()) {
                continue;
            }
            let actions = cloud.ask(Method::Get, &ask::actions(&server.id), None)?;
            let is_ours = |asked: Asked| {
                let began_before = asked.at.is_some_and(|at| at < snapshot.since);
                !began_before && snapshot.is_us(asked.user.as_deref(), marked)
            };
            if asked_to_move(&actions.body).is_some_and(is_ours) {
                unrecorded.push(server);
            }
        }
        Ok(Self {
            migrations,
            unrecorded,
        })
    }

    const fn is_empty(&self) -> bool {
        self.migrations.is_empty() && self.unrecorded.is_empty()
    }

    const fn len(&self) -> usize {
        self.migrations.len() + self.unrecorded.len()
    }

    /// The servers, for people.
    fn titles(&self, snapshot: &Snapshot) -> Vec<String> {
        let recorded = self.migrations.iter();
        let recorded = recorded.map(|migration| snapshot.title(&migration.instance_uuid));
        let unrecorded = self.unrecorded.iter().map(|server| server.title());
        recorded.chain(unrecorded).collect()
    }

    /// nova-compute may respond again within the time of the cancel. Until then its servers may still leave, so it stays
    /// disabled, and if the time ends first, until the uncordon.
    fn of_silent_host(&self, snapshot: &Snapshot, hook_state: &mut HookState) -> Pending {
        let host = &snapshot.host;
        let all = self.titles(snapshot);
        hook_state.cancel_checked = true;
        if !hook_state.silence_reported {
            hook_state.silence_reported = true;
            node_events::cannot_abort(host, &all.join(", "));
        }
        // If the time ends first, the end of the drain and `scupper status` show this text: it names the servers.
        let progress = format!(
            "nova-compute on {host} does not respond; it stays disabled until it does, or until the uncordon; {} cannot be aborted: {}",
            count(all.len(), "migration"),
            preflight::named(all.clone())
        );
        let pending = Outcome::pending(progress).again_after(POLL);
        let detail = "it may still leave: its migration cannot be aborted while nova-compute is down";
        all.into_iter().fold(pending, |pending, title| {
            pending.waiting_for(title, detail.to_owned(), None)
        })
    }
}

/// Whether it began in this drain, and is in progress, or a finished cold migration that still needs its confirmation.
fn is_open(migration: &Migration, snapshot: &Snapshot) -> bool {
    let confirmable = migration.kind() == Kind::Cold && migration.is_unconfirmed();
    migration.created() >= snapshot.since && (migration.is_active() || confirmable)
}

fn stop(
    settings: &Settings,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
    snapshot: &Snapshot,
    under_way: &UnderWay<'_>,
) -> Result<Outcome, StepError> {
    let version = cloud.version()?;
    for migration in &under_way.migrations {
        let Some(operation) = undo(migration, version) else {
            continue;
        };
        apply(cloud, snapshot, &operation, hook_state)?;
        if matches!(operation, Operation::Abort { .. }) && hook_state.mark_reported(migration.id) {
            let title = snapshot.title(&migration.instance_uuid);
            node_events::aborted_after_drain(&title, migration.id);
        }
    }
    let progress = format!(
        "{} from {} {} being aborted: {}",
        count(under_way.len(), "migration"),
        snapshot.host,
        if under_way.len() == 1 { "is" } else { "are" },
        preflight::named(under_way.titles(snapshot)),
    );
    let mut pending = Outcome::pending(progress).again_after(settings.poll.min(POLL));
    for migration in &under_way.migrations {
        pending = pending.waiting_for(
            snapshot.title(&migration.instance_uuid),
            migration.describe(),
            Some(migration.created()),
        );
    }
    for server in &under_way.unrecorded {
        let detail = "migration requested; Nova has recorded no migration yet that could be aborted";
        pending = pending.waiting_for(server.title(), detail.to_owned(), None);
    }
    Ok(pending.into())
}

/// The operation that ends a migration. One that has just been accepted or has nearly finished cannot be aborted, and is
/// awaited.
fn undo(migration: &Migration, version: Version) -> Option<Operation> {
    let server = migration.instance_uuid.clone();
    if migration.is_abortable(version) {
        return Some(Operation::Abort {
            server,
            migration: migration.id,
        });
    }
    (migration.kind() == Kind::Cold && migration.is_unconfirmed()).then_some(Operation::Confirm(server))
}
