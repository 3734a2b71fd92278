//! Checks before any change: the host, the other hosts, the permissions, the servers' states.

use scupper_sdk::http::Method;
use scupper_sdk::mark::Mark;
use scupper_sdk::{Call, count};

use super::observe::{compute_services, servers, unconfirmed};
use super::{node_events, surroundings};
use crate::cloud::Cloud;
use crate::nova::{Server, Service, State};
use crate::settings::{Others, Settings, Stopped};
use crate::state::HookState;
use crate::step_error::StepError;

/// What to do with servers that cannot be migrated.
pub(super) const MAKE_MOVABLE: &str =
    "bring them to ACTIVE (shelved ones: openstack server shelve --offload), or set `others` to `ignore`";
/// How many servers a refusal names.
const NAMED: usize = 8;

/// Checks whether the drain can begin, before the node is cordoned. Changes nothing.
pub(crate) fn preflight(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
) -> Result<(), StepError> {
    let service = service(call, settings, hook_state, cloud)?;
    let mark = Mark::of_drain(call, settings.cluster())?;
    check(settings, &service, &mark, hook_state, cloud).map(drop)
}

/// The compute service of the node: the one that an earlier step found, or searched among all.
pub(super) fn service(
    call: &Call,
    settings: &Settings,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
) -> Result<Service, StepError> {
    if let Some(host) = hook_state.host.clone() {
        let found = compute_services(cloud, Some(&host))?;
        if let Some(service) = found.into_iter().find(|service| service.host == host) {
            return Ok(service);
        }
        hook_state.host = None;
    }
    let all = compute_services(cloud, None)?;
    let service = settings
        .mapping
        .find(&call.node, &all)
        .map_err(StepError::Fatal)?;
    hook_state.host = Some(service.host.clone());
    Ok(service.clone())
}

/// Checks once, and returns what is to leave; `None` once the drain has begun.
pub(super) fn check(
    settings: &Settings,
    service: &Service,
    mark: &Mark,
    hook_state: &mut HookState,
    cloud: &mut Cloud<'_>,
) -> Result<Option<String>, StepError> {
    if hook_state.planned || mark.is_of_drain(service.reason()) {
        hook_state.planned = true;
        return Ok(None);
    }
    if let Some(words) = of_another(service, mark) {
        return Err(StepError::Fatal(words));
    }
    let host = &service.host;
    let servers = servers(cloud, host)?;
    let leaving = leaving(settings, &servers);
    if settings.moves.others == Others::Fail {
        refuse_immovable(settings, host, &servers)?;
        refuse_unconfirmed(host, cloud)?;
    }
    if leaving > 0 {
        refuse_dead_end(service, leaving, cloud)?;
    }
    refuse_without_rights(&servers, cloud)?;
    hook_state.planned = true;
    let all = count(servers.len(), "server");
    Ok(Some(format!("plan for {host}: {leaving} of {all} to leave")))
}

/// Why a service that a drain of another node has disabled cannot be drained: that node's uncordon would enable it.
pub(super) fn of_another(service: &Service, mark: &Mark) -> Option<String> {
    let reason = service.reason();
    (!service.is_enabled() && mark.is_of_another(reason)).then(|| {
        format!(
            "{} is disabled for another Kubernetes node: {reason}; two nodes cannot share one Nova host: correct `host-table`, `host-annotation` or `host-label`, or uncordon the other node",
            service.host
        )
    })
}

/// The drain would need these permissions only after its first change.
fn refuse_without_rights(servers: &[Server], cloud: &mut Cloud<'_>) -> Result<(), StepError> {
    for (what, path) in surroundings::reads(servers) {
        let answer = cloud.ask(Method::Get, &path, None);
        answer.map_err(|error| error.during(&format!("cannot {what}")))?;
    }
    Ok(())
}

/// Servers can leave only if their host and at least one other host are up.
fn refuse_dead_end(service: &Service, leaving: usize, cloud: &mut Cloud<'_>) -> Result<(), StepError> {
    let host = &service.host;
    let leaving = count(leaving, "server");
    if !service.is_up() {
        return Err(StepError::retry(format!(
            "nova-compute on {host} is down with {leaving} on it: a dead host cannot be migrated from; evacuate it with your high-availability tool"
        )));
    }
    let all = compute_services(cloud, None)?;
    if has_another(&all, host) {
        return Ok(());
    }
    Err(StepError::fatal(dead_end(&all, host, &leaving)))
}

/// Whether a server of this host can go to another one.
pub(super) fn has_another(all: &[Service], host: &str) -> bool {
    let mut others = all.iter().filter(|other| other.host != host);
    others.any(|other| other.is_enabled() && other.is_up())
}

/// The refusal then.
pub(super) fn dead_end(all: &[Service], host: &str, leaving: &str) -> String {
    let mut words = format!("no other compute host is enabled and up: {leaving} on {host} cannot leave");
    let others = others(all, host);
    if !others.is_empty() {
        words.push_str("; ");
        words.push_str(&others);
    }
    words
}

/// Why the other hosts get no servers. Of those that could get some, Nova does not say why it chose none.
pub(super) fn others(all: &[Service], host: &str) -> String {
    let others = all.iter().filter(|other| other.host != host);
    let (could, cannot): (Vec<_>, Vec<_>) = others.partition(|other| other.is_enabled() && other.is_up());
    let cannot = named(cannot.into_iter().map(out_of_service).collect());
    let which = match could.as_slice() {
        [] => return cannot,
        [one] => format!("{} is", one.host),
        all => format!("{} other hosts are", all.len()),
    };
    let could = format!("{which} enabled and up, but full, filtered out or in another cell");
    if cannot.is_empty() {
        return could;
    }
    format!("{cannot}; {could}")
}

fn out_of_service(service: &Service) -> String {
    let (host, reason) = (&service.host, service.reason());
    if service.is_enabled() {
        format!("{host} is down")
    } else if Mark::is_of_scupper(reason) {
        format!("{host} is disabled by {reason}")
    } else {
        format!("{host} is disabled: {}", node_events::reason_text(reason))
    }
}

pub(super) fn leaving(settings: &Settings, servers: &[Server]) -> usize {
    let leaves = |server: &&Server| match server.state() {
        State::Live | State::Busy(_) | State::Unknown => true,
        State::Stopped => settings.moves.stopped == Stopped::Cold,
        State::Shelved | State::Other(_) => false,
    };
    servers.iter().filter(leaves).count()
}

/// The servers whose state does not allow a migration, with the state.
pub(super) fn immovable(settings: &Settings, servers: &[Server]) -> Vec<String> {
    let state = |server: &Server| match server.state() {
        State::Shelved if settings.moves.stopped == Stopped::Cold => {
            Some(format!("{} is shelved", server.title()))
        }
        State::Other(state) => Some(format!("{} is {state}", server.title())),
        _ => None,
    };
    servers.iter().filter_map(state).collect()
}

fn refuse_immovable(settings: &Settings, host: &str, servers: &[Server]) -> Result<(), StepError> {
    let immovable = immovable(settings, servers);
    if immovable.is_empty() {
        return Ok(());
    }
    let number = immovable.len();
    Err(StepError::fatal(format!(
        "{} on {host} cannot be migrated: {}; {MAKE_MOVABLE}",
        count(number, "server"),
        named(immovable)
    )))
}

fn refuse_unconfirmed(host: &str, cloud: &mut Cloud<'_>) -> Result<(), StepError> {
    match unconfirmed_words(host, cloud)? {
        Some((words, fix)) => Err(StepError::fatal(format!("{words}; {fix}"))),
        None => Ok(()),
    }
}

/// What to say of resizes away from the host that are not confirmed, and what to do.
pub(super) fn unconfirmed_words(
    host: &str,
    cloud: &mut Cloud<'_>,
) -> Result<Option<(String, String)>, StepError> {
    let servers = unconfirmed(cloud, host)?;
    let Some(first) = servers.first() else {
        return Ok(None);
    };
    let fix = format!(
        "confirm each (openstack server resize confirm {}), or set `others` to `ignore`",
        first.id
    );
    let number = count(servers.len(), "server");
    let titles = named(servers.iter().map(Server::title).collect());
    let words =
        format!("{number} resized away from {host} may still return, so the disks are there: {titles}");
    Ok(Some((words, fix)))
}

/// The first few of them.
pub(super) fn named(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all.join("; ")
}
