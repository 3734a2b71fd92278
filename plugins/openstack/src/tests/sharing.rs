//! Several nodes, hosts and marks.

use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase, Policy, Severity};
use serde_json::json;

use super::nova::{Cloud, HOST, service};
use super::{failed, pending, step};
use crate::OpenStack;

const EARLIER: &str = "scupper: node=node-1 cluster=uid-of-cluster drain=earlier";

/// A third host with the mark of an earlier drain of this node, whose host has another name now.
fn leftover(cloud: &Cloud) {
    cloud.with(|state| {
        let mut left = service("compute-0");
        left["status"] = json!("disabled");
        left["disabled_reason"] = json!(EARLIER);
        state.services.insert(0, left);
    });
}

#[test]
fn two_nodes_cannot_share_one_host() {
    let host = Host::new();
    Cloud::new(&host);
    for (table, words) in [
        (
            "node-1=compute-a,node-2=compute-a",
            "node-1 and node-2 cannot both be compute-a",
        ),
        ("node-1=compute-a,node-1=compute-b", "node-1 has two names"),
    ] {
        host.config("host-table", table);
        let problems = OpenStack::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == "host-table" && problems[0].message.contains(words),
            "{problems:?}"
        );
    }
}

/// The table cannot show it if labels or annotations name the hosts.
#[test]
fn a_host_that_is_disabled_for_another_node_is_refused_before_any_change_and_by_the_check() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let theirs = "scupper: node=node-2 cluster=uid-of-cluster drain=d2";
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!(theirs);
    });
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        assert_eq!(
            failed(&host, phase),
            format!(
                "compute-a is disabled for another Kubernetes node: {theirs}; two nodes cannot share one Nova host: correct \
                 `host-table`, `host-annotation` or `host-label`, or uncordon the other node"
            )
        );
    }
    let findings = host.check::<OpenStack>();
    let found = findings.iter().find(|finding| finding.subject == "host").unwrap();
    assert_eq!(found.severity, Severity::Error);
    assert!(found.message.contains(theirs), "{found:?}");
}

#[test]
fn an_uncordon_enables_only_the_host_of_this_node_and_names_the_others() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    leftover(&cloud);
    // It is gone for good, and must hold up nothing.
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    pending(&host);
    step(&host, Phase::BeforeDrain);
    host.drain_named("maintenance-complete");
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
    assert_eq!(cloud.service("compute-0")["disabled_reason"], json!(EARLIER));
    let event = "Warning ComputeServiceStaysDisabled of node-1: nova-compute on compute-0 stays disabled: a drain of node-1 \
                 disabled it, but the configuration no longer maps it to this node; to enable it: `openstack compute service \
                 set --enable compute-0 nova-compute`";
    assert!(
        host.events().iter().any(|emitted| emitted == event),
        "{:?}",
        host.events()
    );
}

/// An operator had disabled this node's host, so this drain has left no mark anywhere.
#[test]
fn a_cancel_looks_at_the_nodes_host_and_not_at_one_with_an_old_mark() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    leftover(&cloud);
    cloud.with(|state| {
        state.services[1]["status"] = json!("disabled");
        state.services[1]["disabled_reason"] = json!("ticket 7");
    });
    cloud.server("s1", "active");
    pending(&host);
    assert!(
        matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)),
        "a migration runs"
    );
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
    while step(&host, Phase::OnCancel) != Outcome::Done {}
    assert_eq!(cloud.service(HOST)["disabled_reason"], "ticket 7");
    assert_eq!(cloud.service("compute-0")["disabled_reason"], json!(EARLIER));
}
