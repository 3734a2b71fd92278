//! Paths and bodies of requests.

use scupper_sdk::http::escaped;
use serde_json::{Value, json};

/// Servers per page: few enough to keep a response below a megabyte.
const SERVERS: u32 = 200;
const MIGRATIONS: u32 = 500;

/// All compute services, or that of one host.
pub(crate) fn services(host: Option<&str>) -> String {
    match host {
        Some(host) => format!("/os-services?binary=nova-compute&host={}", escaped(host)),
        None => "/os-services?binary=nova-compute".to_owned(),
    }
}

pub(crate) fn service(id: &str) -> String {
    format!("/os-services/{}", escaped(id))
}

/// Without `all_tenants` Nova omits the servers of other projects.
pub(crate) fn servers(host: &str, marker: Option<&str>) -> String {
    let mut path = format!(
        "/servers/detail?all_tenants=1&host={}&limit={SERVERS}&sort_key=uuid&sort_dir=asc",
        escaped(host)
    );
    push_marker(&mut path, marker);
    path
}

/// The migrations from or to the host; from 2.59 on in pages and filtered, such as by `changes-since`.
pub(crate) fn migrations(
    host: &str,
    paged: bool,
    filter: Option<(&str, &str)>,
    marker: Option<&str>,
) -> String {
    let mut path = format!("/os-migrations?host={}", escaped(host));
    if paged {
        path.push_str(&format!("&limit={MIGRATIONS}"));
        if let Some((key, value)) = filter {
            path.push_str(&format!("&{key}={}", escaped(value)));
        }
        push_marker(&mut path, marker);
    }
    path
}

/// Servers of all tenants that are being built, the newest first.
pub(crate) fn building() -> String {
    format!("/servers/detail?all_tenants=1&status=BUILD&limit={SERVERS}&sort_key=created_at&sort_dir=desc")
}

/// Servers that are being unshelved.
pub(crate) fn unshelving() -> String {
    format!("/servers/detail?all_tenants=1&task_state=unshelving&limit={SERVERS}")
}

/// The migrations of all hosts with this status.
pub(crate) fn migrations_in(status: &str) -> String {
    format!("/os-migrations?status={status}")
}

/// Servers of all tenants whose resize waits for a confirmation, and the records of such resizes from or to the host.
pub(crate) fn unconfirmed(host: &str) -> (String, String) {
    let servers = format!("/servers/detail?all_tenants=1&status=VERIFY_RESIZE&limit={SERVERS}");
    (
        servers,
        format!("/os-migrations?host={}&status=finished", escaped(host)),
    )
}

/// The migrations of one server.
pub(crate) fn migrations_of(id: &str) -> String {
    format!("/os-migrations?instance_uuid={}", escaped(id))
}

pub(crate) fn server(id: &str) -> String {
    format!("/servers/{id}")
}

pub(crate) fn action(id: &str) -> String {
    format!("/servers/{id}/action")
}

pub(crate) fn server_migrations(id: &str) -> String {
    format!("/servers/{id}/migrations")
}

pub(crate) fn server_migration(id: &str, migration: u64) -> String {
    format!("/servers/{id}/migrations/{migration}")
}

pub(crate) fn server_migration_action(id: &str, migration: u64) -> String {
    format!("/servers/{id}/migrations/{migration}/action")
}

pub(crate) fn actions(id: &str) -> String {
    format!("/servers/{id}/os-instance-actions")
}

pub(crate) fn one_action(id: &str, request: &str) -> String {
    format!("/servers/{id}/os-instance-actions/{}", escaped(request))
}

/// The host must be present, as null, so that the scheduler chooses.
pub(crate) fn live() -> Value {
    json!({"os-migrateLive": {"host": null, "block_migration": "auto"}})
}

pub(crate) fn cold() -> Value {
    json!({"migrate": null})
}

pub(crate) fn confirm() -> Value {
    json!({"confirmResize": null})
}

pub(crate) fn force() -> Value {
    json!({"force_complete": null})
}

pub(crate) fn disable(reason: &str) -> Value {
    json!({"status": "disabled", "disabled_reason": reason})
}

pub(crate) fn enable() -> Value {
    json!({"status": "enabled"})
}

/// The URL of the version document: in the endpoint a project id may follow the version.
pub(crate) fn version_url(compute: &str) -> String {
    for version in ["/v2.1", "/v2"] {
        if let Some((before, after)) = compute.rsplit_once(version)
            && (after.is_empty() || after.starts_with('/'))
        {
            return format!("{before}{version}/");
        }
    }
    format!("{compute}/")
}

fn push_marker(path: &mut String, marker: Option<&str>) {
    if let Some(marker) = marker {
        path.push_str(&format!("&marker={}", escaped(marker)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_span_all_tenants_and_escape_the_host() {
        assert_eq!(
            servers("a b&c", Some("id-1")),
            "/servers/detail?all_tenants=1&host=a%20b%26c&limit=200&sort_key=uuid&sort_dir=asc&marker=id-1"
        );
    }

    #[test]
    fn before_2_59_migrations_have_neither_pages_nor_since() {
        let since = Some(("changes-since", "2026-11-21T13:49:58Z"));
        assert_eq!(migrations("h", false, since, None), "/os-migrations?host=h");
        assert_eq!(
            migrations("h", true, since, Some("m")),
            "/os-migrations?host=h&limit=500&changes-since=2026-11-21T13:49:58Z&marker=m"
        );
    }

    #[test]
    fn the_host_of_a_live_migration_is_explicitly_null() {
        assert_eq!(live().pointer("/os-migrateLive/host"), Some(&Value::Null));
    }

    #[test]
    fn the_version_document_is_above_the_project() {
        for (compute, url) in [
            ("http://n:8774/v2.1", "http://n:8774/v2.1/"),
            ("http://n/compute/v2.1/abc", "http://n/compute/v2.1/"),
            ("http://n/v2/abc", "http://n/v2/"),
            ("http://n/v2.1x", "http://n/v2.1x/"),
            ("http://n/compute", "http://n/compute/"),
        ] {
            assert_eq!(version_url(compute), url);
        }
    }
}
