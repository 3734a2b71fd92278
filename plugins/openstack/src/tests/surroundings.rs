//! The checks before the first drain, and their findings.

use scupper_sdk::http::Response;
use scupper_sdk::testing::Host;
use scupper_sdk::{Finding, Severity};
use serde_json::json;

use super::nova::{AUTH, Cloud};
use crate::OpenStack;

fn subjects(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.subject.as_str()).collect()
}

#[test]
fn a_healthy_check_lists_each_item_and_changes_nothing() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.server("s2", "stopped");
    let findings = host.check::<OpenStack>();
    assert_eq!(
        subjects(&findings),
        ["credential", "Nova", "rights", "host", "other hosts", "servers"]
    );
    let bad = findings.iter().filter(|finding| finding.severity != Severity::Ok);
    assert_eq!(bad.count(), 0, "{findings:?}");
    assert_eq!(findings[1].message, "http://nova:8774/v2.1, microversion 2.96");
    assert_eq!(findings[5].message, "2 servers on compute-a, 1 to leave");
    let findings = host.check_without_node::<OpenStack>();
    assert_eq!(subjects(&findings), ["credential", "Nova", "rights", "hosts"]);
    // POST is used for logins and for requests to the server that does not exist.
    let changes = cloud.with(|state| {
        let mut asked = state.asked.clone();
        asked.retain(|asked| !asked.starts_with("GET") && !asked.contains("/auth/tokens"));
        asked.retain(|asked| !asked.contains("/00000000-0000-0000-0000-000000000000/"));
        asked
    });
    assert_eq!(changes, [] as [String; 0]);
    assert_eq!(cloud.with(|state| state.migrations.len()), 0);
}

#[test]
fn each_obstacle_comes_with_a_fix() {
    type Change = fn(&Host, &Cloud);
    let disabled: Change = |_, cloud| {
        cloud.with(|state| {
            state.services[0]["status"] = json!("disabled");
            state.services[0]["disabled_reason"] = json!("ticket 7");
        });
    };
    let cases: [(Change, Severity, &str, &str, &str); 11] = [
        (
            |_, cloud| answers(cloud, "/auth/tokens", 401),
            Severity::Error,
            "credential",
            "rejects the credential",
            "secret",
        ),
        (
            |_, cloud| answers(cloud, "/auth/tokens", 404),
            Severity::Error,
            "Keystone",
            "Identity v3",
            "auth-url",
        ),
        (
            |host, _| host.config("region-name", ""),
            Severity::Error,
            "region",
            "one, two",
            "region-name",
        ),
        (
            |_, cloud| cloud.with(|state| state.newest = "2.42"),
            Severity::Error,
            "microversion",
            "2.53",
            "upgrade Nova",
        ),
        (
            |_, cloud| answers(cloud, "/os-services", 403),
            Severity::Error,
            "rights",
            "cannot list compute services",
            "role admin",
        ),
        (
            |_, cloud| answers(cloud, "/action", 401),
            Severity::Error,
            "rights",
            "cannot move a server",
            "access rules",
        ),
        (
            |host, _| host.config("host-table", "node-1=compute-z"),
            Severity::Error,
            "host",
            "compute-z",
            "host-table",
        ),
        (
            |_, cloud| cloud.with(|state| state.services[0]["state"] = json!("down")),
            Severity::Error,
            "host",
            "is down",
            "evacuate",
        ),
        (
            disabled,
            Severity::Warning,
            "host",
            "ticket 7",
            "openstack compute service set --enable compute-a",
        ),
        (
            |_, cloud| cloud.with(|state| state.services[1]["status"] = json!("disabled")),
            Severity::Error,
            "other hosts",
            "nowhere to go",
            "enable another",
        ),
        (
            |_, cloud| cloud.server("s1", "suspended"),
            Severity::Error,
            "servers",
            "1 server cannot be migrated: server vm-s1 (s1) is suspended",
            "set `others` to `ignore`",
        ),
    ];
    for (change, severity, subject, message, fix) in cases {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        change(&host, &cloud);
        let findings = host.check::<OpenStack>();
        let bad: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity != Severity::Ok)
            .collect();
        assert_eq!(bad.len(), 1, "{findings:?}");
        assert_eq!((bad[0].severity, bad[0].subject.as_str()), (severity, subject));
        assert!(
            bad[0].message.contains(message) && bad[0].fix.contains(fix),
            "{findings:?}"
        );
    }
}

/// After a `kubectl uncordon`, which does not reach Nova.
#[test]
fn a_host_still_disabled_after_an_uncordon_comes_with_the_command() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!("scupper: node=node-1 cluster=uid-of-cluster drain=d1");
    });
    let findings = host.check::<OpenStack>();
    let found = findings.iter().find(|finding| finding.subject == "host").unwrap();
    assert_eq!(
        (found.severity, found.fix.as_str()),
        (Severity::Warning, "scupper uncordon node-1")
    );
}

#[test]
fn a_check_without_configuration_lists_the_missing_keys() {
    let host = Host::new();
    let findings = host.check::<OpenStack>();
    assert!(
        findings
            .iter()
            .any(|finding| finding.subject == "configuration" && finding.message.contains("auth-url")),
        "{findings:?}"
    );
}

fn answers(cloud: &Cloud, path: &'static str, status: u16) {
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            let url = request.url.trim_start_matches(AUTH);
            let is_it = url.contains(path) || request.url.ends_with(path);
            is_it.then(|| Ok(Response::new(status, r#"{"error": {"message": "no"}}"#)))
        });
    });
}
