//! Drains that are refused before any change.

use scupper_sdk::http::{Method, Request};
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::nova::{Cloud, HOST};
use super::{failed, pending, step};
use crate::OpenStack;

#[track_caller]
fn unchanged(cloud: &Cloud) {
    assert_eq!(cloud.count("PUT"), 0);
    assert_eq!(cloud.count("POST /servers"), 0);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn a_host_unknown_to_nova_is_refused() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("host-table", "node-1=compute-z");
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        let message = failed(&host, phase);
        assert!(
            message.contains("no compute service `compute-z`") && message.contains("compute-a, compute-b"),
            "{message}"
        );
    }
    unchanged(&cloud);
}

#[test]
fn a_node_is_mapped_by_annotation_label_short_or_long_name() {
    for (key, value, nova) in [
        ("host-annotation", "example.com/nova", "compute-a"),
        ("host-table", "", "node-1"),
        ("host-table", "", "node-1.example.com"),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("host-table", "");
        host.config(key, value);
        host.annotate_node("example.com/nova", "compute-a");
        cloud.with(|state| state.services[0]["host"] = json!(nova));
        let outcome = step(&host, Phase::BeforeCordon);
        assert_eq!(outcome, Outcome::Done, "{key} {value} {nova}");
    }
}

#[test]
fn two_hosts_with_the_same_short_name_are_an_error() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("host-table", "");
    cloud.with(|state| {
        state.services[0]["host"] = json!("node-1.rack-1");
        state.services[1]["host"] = json!("node-1.rack-2");
    });
    let message = failed(&host, Phase::BeforeCordon);
    assert!(message.contains("more than one"), "{message}");
}

#[test]
fn a_missing_destination_is_reported_before_any_change() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    for (key, value) in [("status", json!("disabled")), ("state", json!("down"))] {
        cloud.with(|state| state.services[1][key] = value);
        let message = failed(&host, Phase::BeforeDrain);
        assert!(message.contains("no other compute host"), "{message}");
    }
    unchanged(&cloud);
}

#[test]
fn a_dead_host_with_servers_is_refused_and_an_empty_one_is_drained() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    cloud.server("s1", "active");
    assert!(pending(&host).progress.contains("evacuate"));
    unchanged(&cloud);
    cloud.with(|state| state.servers.clear());
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
}

#[test]
fn servers_that_cannot_be_migrated_are_named_unless_ignored() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    for state in ["suspended", "rescued", "error", "resized"] {
        cloud.server(state, state);
    }
    let message = failed(&host, Phase::BeforeCordon);
    assert!(
        message.contains("4 servers") && message.contains("suspended"),
        "{message}"
    );
    unchanged(&cloud);
    host.config("others", "ignore");
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    assert_eq!(cloud.count("POST /servers"), 0);
}

#[test]
fn an_unconfirmed_resize_keeps_its_disk_on_the_host() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.migration(7, "s1", HOST, "compute-b", "finished", "resize");
    cloud.server("s1", "resized");
    cloud.set("s1", "host", json!("compute-b"));
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.contains("not confirmed"), "{message}");
    // The record of a deleted server, or of a resize confirmed by hand, does not matter.
    cloud.set("s1", "OS-EXT-STS:vm_state", json!("active"));
    assert!(pending(&host).progress.contains("checking once more"));
}

#[test]
fn the_preflight_before_the_cordon_changes_nothing() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    unchanged(&cloud);
}

#[test]
fn the_plan_is_logged_once_by_two_hooks() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    for _ in 0..2 {
        pending(&host);
    }
    let lines = host.log();
    let plans: Vec<_> = lines
        .iter()
        .filter(|(_, line)| line.starts_with("plan for"))
        .collect();
    assert_eq!(plans.len(), 1, "{lines:?}");
    assert_eq!(plans[0].1, "plan for compute-a: 1 of 1 server to leave");
}

/// Another drain disables the other host at the same moment.
fn disabled_together(cloud: &Cloud, reason: &'static str) {
    let other = cloud.clone();
    let instead = move |request: &Request| {
        if request.method == Method::Put {
            other.with(|state| {
                state.services[1]["status"] = json!("disabled");
                state.services[1]["disabled_reason"] = json!(reason);
            });
        }
        None
    };
    cloud.with(|state| state.instead = Box::new(instead));
}

#[test]
fn of_two_drains_that_begin_together_one_gives_its_own_host_back_and_names_the_other() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    let theirs = "scupper: node=node-2 cluster=uid-of-cluster drain=d2";
    disabled_together(&cloud, theirs);
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    let message = failed(&host, Phase::BeforeDrain);
    assert_eq!(
        message,
        format!(
            "no other compute host is enabled and up: 1 server on compute-a cannot leave; compute-b is disabled by {theirs}"
        )
    );
    assert_eq!(cloud.service(HOST)["status"], "enabled");
    assert_eq!(cloud.service("compute-b")["disabled_reason"], json!(theirs));
    assert_eq!(cloud.count("POST /servers"), 0);
}

#[test]
fn a_host_without_servers_is_drained_although_no_other_is_enabled_any_more() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_together(&cloud, "ticket 9");
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "disabled");
}

#[test]
fn a_server_that_was_resized_away_is_found_before_any_change_and_by_the_check() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    for (id, from) in [("rz-0", HOST), ("rz-1", "compute-b")] {
        cloud.server(id, "resized");
        cloud.set(id, "status", json!("VERIFY_RESIZE"));
        cloud.set(id, "host", json!("compute-c"));
        cloud.migration(
            if from == HOST { 8 } else { 9 },
            id,
            from,
            "compute-c",
            "finished",
            "resize",
        );
    }
    let words = "1 server resized away from compute-a may still return, so the disks are there: server vm-rz-0 (rz-0)";
    let fix = "confirm each (openstack server resize confirm rz-0), or set `others` to `ignore`";
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        assert_eq!(failed(&host, phase), format!("{words}; {fix}"));
    }
    unchanged(&cloud);
    let findings = host.check::<OpenStack>();
    let found = findings.iter().find(|finding| finding.subject == "servers");
    assert_eq!(
        found.map(|found| (&*found.message, &*found.fix)),
        Some((words, fix))
    );
    host.config("others", "ignore");
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
}
