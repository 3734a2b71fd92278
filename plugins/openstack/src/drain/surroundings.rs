//! Checks what drains depend on: the credential, its permissions, the cloud, the node's host.

use scupper_sdk::http::Method;
use scupper_sdk::mark::Mark;
use scupper_sdk::{Finding, Node, count};
use serde_json::Value;

use super::observe::{compute_services, servers};
use super::preflight::{MAKE_MOVABLE, immovable, leaving, named, of_another, unconfirmed_words};
use crate::cloud::Cloud;
use crate::nova::{Server, Servers, Service, State, ask};
use crate::settings::{Others, Settings};
use crate::step_error::StepError;

/// A server that does not exist. Nova answers 404, in some cases before it looks at the permission.
const NO_SERVER: &str = "00000000-0000-0000-0000-000000000000";
/// The host's limit for a response is 4 MiB.
const LARGE_RESPONSE: usize = 2 << 20;

/// Changes nothing: permissions that only a use can prove are tried on a server that does not exist.
pub(crate) fn surroundings(node: Option<&Node>, settings: &Settings, cloud: &mut Cloud<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(obstacle) = check_all(node, settings, cloud, &mut findings) {
        findings.push(obstacle);
    }
    findings
}

fn check_all(
    node: Option<&Node>,
    settings: &Settings,
    cloud: &mut Cloud<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    findings.extend(login(settings, cloud)?);
    let all =
        compute_services(cloud, None).map_err(|step_error| forbidden("list compute services", step_error))?;
    findings.push(rights(cloud)?);
    let host = node
        .map(|node| host(node, settings, &all, findings))
        .transpose()?;
    findings.push(elsewhere(host, &all));
    if let Some(host) = host {
        findings.push(guests(host, settings, cloud)?);
    }
    let longest = cloud.longest();
    if longest > LARGE_RESPONSE {
        findings.push(Finding::warning(
            "response size",
            format!(
                "Nova's longest response had {} KiB; the limit is 4096 KiB",
                longest >> 10
            ),
            "purge old migration records: nova-manage db archive_deleted_rows",
        ));
    }
    Ok(())
}

fn login(settings: &Settings, cloud: &mut Cloud<'_>) -> Result<[Finding; 2], Finding> {
    match cloud.place() {
        Ok((url, version)) => Ok([
            Finding::ok(
                "credential",
                format!("Keystone at {} accepts it", settings.auth_url),
            ),
            Finding::ok("Nova", format!("{url}, microversion 2.{version}")),
        ]),
        Err(step_error) => {
            let subject = cloud.stage();
            let fix = match subject {
                "credential" => "write the correct secret into its file; the next login reads it",
                "region" => "correct `region-name`, `interface` or `compute-url`",
                "Nova" => "correct `compute-url` and the grant of that origin",
                "microversion" => {
                    "upgrade Nova to 16 (Pike) or later, or correct the endpoint: it must be that of Nova's API v2.1"
                }
                _ => "correct `auth-url` and the grant of that origin",
            };
            Err(Finding::error(subject, step_error.message(), fix))
        }
    }
}

/// Tries the requests of a drain, except PUT and DELETE, which a check may not send.
fn rights(cloud: &mut Cloud<'_>) -> Result<Finding, Finding> {
    let all_servers = "/servers/detail?all_tenants=1&limit=1";
    let answer = cloud.ask(Method::Get, all_servers, None);
    let answer = answer.map_err(|step_error| forbidden("list servers of all projects", step_error))?;
    let mut any = Servers::default();
    any.take(&answer.body).ok();
    for (what, path) in reads(&any.0) {
        let answer = cloud.ask(Method::Get, &path, None);
        answer.map_err(|step_error| forbidden(what, step_error))?;
    }
    let posts: [(&str, String, Value); 2] = [
        ("move a server", ask::action(NO_SERVER), ask::live()),
        (
            "complete a migration by force",
            ask::server_migration_action(NO_SERVER, 1),
            ask::force(),
        ),
    ];
    for (what, path, body) in posts {
        let answer = cloud.ask(Method::Post, &path, Some(&body));
        answer.map_err(|step_error| forbidden(what, step_error))?;
    }
    Ok(Finding::ok(
        "rights",
        "the credential may list hosts, servers and migrations of all projects, and move servers",
    ))
}

/// What a drain reads apart from the lists of hosts and servers. Nova looks a server up before the right to read it, so one of
/// these is read if there is one.
pub(super) fn reads(servers: &[Server]) -> [(&'static str, String); 4] {
    let mut known = servers.iter().filter(|server| server.state() != State::Unknown);
    let id = known.next().map_or(NO_SERVER, |server| server.id.as_str());
    [
        ("list migrations", "/os-migrations?limit=1".to_owned()),
        ("read a server", ask::server(id)),
        ("read a server's migrations", ask::server_migrations(id)),
        ("read a server's actions", ask::actions(id)),
    ]
}

fn forbidden(what: &str, step_error: StepError) -> Finding {
    let (subject, fix) = match &step_error {
        StepError::Retry { .. } | StepError::NextStep => ("Nova", "retry when Nova is reachable"),
        _ => (
            "rights",
            "give the credential the role admin, and an application credential the access rules of the README",
        ),
    };
    Finding::error(subject, format!("cannot {what}: {}", step_error.message()), fix)
}

/// The node's host in Nova, and what is wrong with it.
fn host<'s>(
    node: &Node,
    settings: &Settings,
    all: &'s [Service],
    findings: &mut Vec<Finding>,
) -> Result<&'s Service, Finding> {
    let service = settings.mapping.find(node, all).map_err(|message| {
        let fix = "set `host-table`, `host-annotation` or `host-label`";
        Finding::error("host", message, fix)
    })?;
    let (host, reason) = (&service.host, service.reason());
    let mark = Mark::of_node(node, settings.cluster()).map_err(|unknown| unknown.finding())?;
    let by_us = mark.is_of_node(reason);
    findings.push(if let Some(words) = of_another(service, &mark) {
        Finding::error("host", words, "")
    } else if !service.is_up() {
        Finding::error(
            "host",
            format!("nova-compute on {host} is down: no server can be migrated"),
            "start nova-compute; evacuate a dead host with your high-availability tool",
        )
    } else if service.is_enabled() {
        Finding::ok("host", format!("{host}: nova-compute is up and enabled"))
    } else if by_us && node.unschedulable {
        Finding::ok(
            "host",
            format!("{host}: nova-compute is up, disabled by a drain of this node"),
        )
    } else if by_us {
        Finding::warning(
            "host",
            format!(
                "the node is schedulable, but nova-compute on {host} is still disabled by its drain: {reason}"
            ),
            format!("scupper uncordon {}", node.name),
        )
    } else {
        Finding::warning(
            "host",
            format!(
                "nova-compute on {host} is disabled, but not by Scupper: {reason}; a drain keeps it disabled"
            ),
            format!("openstack compute service set --enable {host} nova-compute"),
        )
    });
    Ok(service)
}

/// The hosts that could receive the servers.
fn elsewhere(host: Option<&Service>, all: &[Service]) -> Finding {
    let others = all.iter().filter(|other| other.is_enabled() && other.is_up());
    let others = others
        .filter(|other| host.is_none_or(|host| host.host != other.host))
        .count();
    let least = if host.is_some() { 1 } else { 2 };
    let found = format!("{} enabled and up", count(others, "compute host"));
    match (host, others < least) {
        (Some(_), true) => Finding::error(
            "other hosts",
            "no other compute host is enabled and up: servers have nowhere to go",
            "enable another one: openstack compute service list --service nova-compute",
        ),
        (None, true) => Finding::warning(
            "hosts",
            found,
            "a drain needs another one: openstack compute service list --service nova-compute",
        ),
        (Some(_), false) => Finding::ok("other hosts", found),
        (None, false) => Finding::ok("hosts", found),
    }
}

/// The servers on the host.
fn guests(host: &Service, settings: &Settings, cloud: &mut Cloud<'_>) -> Result<Finding, Finding> {
    let all = servers(cloud, &host.host).map_err(unread)?;
    let leave = leaving(settings, &all);
    let stay = immovable(settings, &all);
    if !stay.is_empty() && settings.moves.others == Others::Fail {
        let number = count(stay.len(), "server");
        return Ok(Finding::error(
            "servers",
            format!("{number} cannot be migrated: {}", named(stay)),
            MAKE_MOVABLE,
        ));
    }
    if settings.moves.others == Others::Fail {
        let resized = unconfirmed_words(&host.host, cloud).map_err(unread)?;
        if let Some((words, fix)) = resized {
            return Ok(Finding::error("servers", words, fix));
        }
    }
    let found = format!(
        "{} on {}, {leave} to leave",
        count(all.len(), "server"),
        host.host
    );
    Ok(Finding::ok("servers", found))
}

fn unread(step_error: StepError) -> Finding {
    Finding::error("servers", step_error.message(), "")
}
