//! The drain ended without being done: what is under way is aborted, what was moved stays where it is, and the service
//! is enabled again if the operator wants it so.

use scupper_sdk::{Call, Outcome, log};

use super::act::perform;
use super::decide::Act;
use super::look::{Picture, compute_services};
use super::{enable, news, preflight};
use crate::cloud::Cloud;
use crate::ledger::Ledger;
use crate::nova::{Kind, Mark, Migration, Server, Version, shown};
use crate::settings::Settings;
use crate::trouble::Trouble;

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
    let under_way: Vec<&Migration> = picture
        .migrations
        .iter()
        .filter(|migration| migration.is_from(&host) && picture.is_ours(migration, marked))
        .filter(|migration| migration.kind() != Kind::Other && is_open(migration, &picture))
        .collect();
    let down = !compute_services(cloud, Some(&host))?
        .iter()
        .any(|service| service.host == host && service.is_up());
    if !under_way.is_empty() && !down {
        return stop(settings, ledger, cloud, &picture, &under_way);
    }
    for migration in under_way {
        log::warn!(
            "nova-compute on {host} is down, so this cannot be aborted: migration {} of server {}",
            migration.id,
            migration.instance_uuid
        );
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
    under_way: &[&Migration],
) -> Result<Outcome, Trouble> {
    let version = cloud.version()?;
    for migration in under_way {
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
        "{} migrations from {} are being aborted",
        under_way.len(),
        picture.host
    );
    let pending = Outcome::pending(progress).again_after(settings.poll);
    let pending = under_way.iter().fold(pending, |pending, migration| {
        let id = &migration.instance_uuid;
        pending.waiting_for(
            picture.server(id).map_or_else(|| shown("", id), Server::title),
            migration.words(),
            Some(migration.created()),
        )
    });
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
