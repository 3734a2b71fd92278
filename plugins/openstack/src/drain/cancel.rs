//! The drain ended without being done: what is under way is aborted, what was moved stays where it is, and the service
//! is enabled again if the operator wants it so.
//!
//! What was asked to move is under way from then on, though Nova has recorded no migration yet.

use std::time::Duration;

use scupper_sdk::http::Method;
use scupper_sdk::{Call, Outcome, count, log};

use super::act::perform;
use super::decide::Act;
use super::look::{Picture, compute_services};
use super::{enable, news, preflight};
use crate::cloud::Cloud;
use crate::ledger::Ledger;
use crate::nova::{Kind, Mark, Migration, Server, State, Version, ask, asked_to_move, shown};
use crate::settings::{Settings, Stopped};
use crate::trouble::Trouble;

/// The end of a drain has little time.
const POLL: Duration = Duration::from_secs(1);
/// A request to move a server whose answer was lost has its effect within this.
const LATE: Duration = Duration::from_secs(2);

/// What is to be stopped or awaited before the service is enabled.
struct UnderWay<'p> {
    migrations: Vec<&'p Migration>,
    /// Nova has taken the request, and has recorded no migration yet.
    unrecorded: Vec<&'p Server>,
}

/// One step.
pub(crate) fn cancel(
    call: &Call,
    settings: &Settings,
    ledger: &mut Ledger,
    cloud: &mut Cloud<'_>,
) -> Result<Outcome, Trouble> {
    let ours = enable::ours(call, cloud)?;
    let host = match ours.first() {
        Some(service) => service.host.clone(),
        None => match preflight::service(call, settings, ledger, cloud) {
            Ok(service) => service.host,
            // A host that Nova does not know was never touched.
            Err(Trouble::Stop(words)) => {
                log::debug!("nothing to put back: {words}");
                return Ok(Outcome::Done);
            }
            Err(trouble) => return Err(trouble),
        },
    };
    let picture = Picture::take(cloud, &host, call.drain.started)?;
    let marked = !ours.is_empty();
    let under_way = UnderWay::find(cloud, &picture, marked)?;
    let down = !compute_services(cloud, Some(&host))?
        .iter()
        .any(|service| service.host == host && service.is_up());
    if down {
        under_way.leave(&host);
    } else if !under_way.is_empty() {
        ledger.looked = true;
        return stop(settings, ledger, cloud, &picture, &under_way);
    } else if !ledger.looked && picture.servers.iter().any(|server| moves(server, settings)) {
        ledger.looked = true;
        let progress = format!("looking once more whether a server begins to leave {host}");
        return Ok(Outcome::pending(progress).again_after(LATE).into());
    }
    if settings.on_failure.undoes(call.drain.held) {
        let mark = Mark::new(&call.node.name, &call.drain.id);
        for service in &ours {
            if mark.is_of_drain(service.reason()) {
                enable::put(call, service, cloud)?;
            } else {
                news::left_disabled(&service.host, service.reason());
            }
        }
    }
    Ok(Outcome::Done)
}

/// This drain may have asked for it to be moved.
fn moves(server: &Server, settings: &Settings) -> bool {
    match server.state() {
        State::Live => true,
        State::Stopped => settings.moves.stopped == Stopped::Cold,
        State::Busy(_) | State::Other(_) | State::Unknown => false,
    }
}

impl<'p> UnderWay<'p> {
    fn find(cloud: &mut Cloud<'_>, picture: &'p Picture, marked: bool) -> Result<Self, Trouble> {
        let migrations: Vec<&Migration> = picture
            .migrations
            .iter()
            .filter(|migration| migration.is_from(&picture.host) && picture.is_ours(migration, marked))
            .filter(|migration| migration.kind() != Kind::Other && is_open(migration, picture))
            .collect();
        let mut unrecorded = Vec::new();
        for server in picture.servers.iter().filter(|server| server.is_asked_to_move()) {
            let recorded = picture.migrations_of(&server.id);
            if recorded.iter().any(|migration| migration.is_active()) {
                continue;
            }
            let actions = cloud.ask(Method::Get, &ask::actions(&server.id), None)?;
            let asked = asked_to_move(&actions.body);
            if asked.is_some_and(|asked| picture.is_us(asked.user.as_deref(), marked)) {
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

    /// Without nova-compute nothing is aborted.
    fn leave(&self, host: &str) {
        let unrecorded = self.unrecorded.iter().map(|server| server.id.as_str());
        let migrations = self.migrations.iter().map(|one| one.instance_uuid.as_str());
        for server in migrations.chain(unrecorded) {
            log::warn!(
                "nova-compute on {host} is down, so this cannot be aborted: the migration of server {server}"
            );
        }
    }
}

/// A cold move that has come to its end is confirmed rather than left half done.
fn is_open(migration: &Migration, picture: &Picture) -> bool {
    let confirmable =
        migration.kind() == Kind::Cold && migration.is_unconfirmed() && migration.created() >= picture.since;
    migration.is_active() || confirmable
}

fn stop(
    settings: &Settings,
    ledger: &mut Ledger,
    cloud: &mut Cloud<'_>,
    picture: &Picture,
    under_way: &UnderWay<'_>,
) -> Result<Outcome, Trouble> {
    let version = cloud.version()?;
    for migration in &under_way.migrations {
        let Some(act) = undo(migration, version) else {
            continue;
        };
        perform(cloud, picture, &act, ledger)?;
        if matches!(act, Act::Abort { .. }) && ledger.tell(migration.id) {
            let id = &migration.instance_uuid;
            let server = picture.server(id);
            let title = server.map_or_else(|| shown("", id), Server::title);
            news::taken_back(&title, migration.id);
        }
    }
    let progress = format!(
        "{} from {} {} being aborted",
        count(under_way.len(), "migration"),
        picture.host,
        if under_way.len() == 1 { "is" } else { "are" },
    );
    let mut pending = Outcome::pending(progress).again_after(settings.poll.min(POLL));
    for migration in &under_way.migrations {
        let id = &migration.instance_uuid;
        pending = pending.waiting_for(
            picture.server(id).map_or_else(|| shown("", id), Server::title),
            migration.words(),
            Some(migration.created()),
        );
    }
    for server in &under_way.unrecorded {
        let detail = "was asked to move; Nova has recorded no migration yet that could be aborted";
        pending = pending.waiting_for(server.title(), detail.to_owned(), None);
    }
    Ok(pending.into())
}

/// What is accepted cannot be aborted yet, what is nearly through cannot be any more: both are waited for.
fn undo(migration: &Migration, version: Version) -> Option<Act> {
    let server = migration.instance_uuid.clone();
    if migration.is_abortable(version) {
        return Some(Act::Abort {
            server,
            migration: migration.id,
        });
    }
    (migration.kind() == Kind::Cold && migration.is_unconfirmed()).then_some(Act::Confirm(server))
}
