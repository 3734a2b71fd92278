//! The mark, and who enables the service again.

use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::emptying::MARK;
use super::nova::{Cloud, HOST};
use super::{failed, pending, step};

pub(super) fn disabled_by(cloud: &Cloud, reason: &str) {
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!(reason);
    });
}

#[test]
fn reasons_of_operators_and_of_the_hypervisor_driver_are_kept() {
    for reason in ["kernel update", "AUTO: Connection to libvirt lost: 1", ""] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        disabled_by(&cloud, reason);
        cloud.server("s1", "active");
        pending(&host);
        cloud.end_all("completed");
        pending(&host);
        assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
        assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
        assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
        assert_eq!(cloud.count("PUT"), 0, "{reason}");
        assert_eq!(cloud.service(HOST)["disabled_reason"], json!(reason));
    }
}

#[test]
fn a_cancel_keeps_the_service_that_an_earlier_drain_disabled() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let earlier = "scupper: node=node-1 cluster=uid-of-cluster drain=earlier";
    disabled_by(&cloud, earlier);
    pending(&host);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["disabled_reason"], json!(earlier));
    assert_eq!(cloud.count("PUT"), 0);
    host.drain_named("maintenance-complete");
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn drain_and_uncordon_each_report_once_that_the_service_stays_disabled() {
    for (reason, words) in [("ticket 7", "ticket 7"), ("", "no reason given")] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        disabled_by(&cloud, reason);
        pending(&host);
        step(&host, Phase::BeforeDrain);
        host.drain_named("maintenance-complete");
        step(&host, Phase::AfterUncordon);
        let found = format!("was already disabled: {words}");
        let stays = format!("stays disabled: {words}");
        let events = host.events();
        for words in [&found, &stays] {
            let count = events.iter().filter(|event| event.contains(words)).count();
            assert_eq!(count, 1, "{words}: {events:?}");
        }
    }
}

#[test]
fn the_uncordon_reports_nothing_if_the_host_is_enabled_or_unknown() {
    for table in ["node-1=compute-a", "node-1=compute-z"] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("host-table", table);
        cloud.with(|state| state.services[1]["status"] = json!("disabled"));
        assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
        assert_eq!(host.events(), [] as [String; 0]);
    }
}

#[test]
fn the_uncordon_enables_what_an_earlier_drain_disabled() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(&cloud, MARK);
    host.drain_named("maintenance-complete");
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn the_service_of_another_node_is_not_ours() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(&cloud, "scupper: node=node-10 cluster=uid-of-cluster drain=x");
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "disabled");
}

#[test]
fn after_the_uncordon_it_waits_until_nova_compute_is_up() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(&cloud, "scupper: node=node-1 cluster=uid-of-cluster drain=x");
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    assert!(matches!(step(&host, Phase::AfterUncordon), Outcome::Pending(_)));
    assert_eq!(cloud.count("PUT"), 0);
    cloud.with(|state| state.services[0]["state"] = json!("up"));
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn cancel_aborts_what_is_under_way_and_enables_again() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
    assert_eq!(cloud.with(|state| state.servers[0]["host"].clone()), json!(HOST));
}

#[test]
fn the_service_follows_the_cordon_unless_configured_otherwise() {
    for (choice, held, status) in [
        ("", false, "enabled"),
        ("", true, "disabled"),
        ("follow", true, "disabled"),
        ("undo", true, "enabled"),
        ("undo", false, "enabled"),
        ("keep", false, "disabled"),
        ("keep", true, "disabled"),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("on-failure", choice);
        disabled_by(&cloud, MARK);
        if held {
            host.held();
        }
        if choice == "keep" && !held {
            // The engine records it for the uncordon, and reports it.
            assert_eq!(
                failed(&host, Phase::OnCancel),
                "nova-compute on compute-a stays disabled, as configured (`on-failure: keep`)"
            );
        } else {
            assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
        }
        assert_eq!(cloud.service(HOST)["status"], status, "{choice:?} {held}");
        host.drain_named("maintenance-complete");
        assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
        assert_eq!(cloud.service(HOST)["status"], "enabled", "{choice:?} {held}");
    }
}

#[test]
fn cancelling_a_drain_that_changed_nothing_does_nothing() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("host-table", "node-1=compute-z");
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.count("PUT"), 0);
}

#[test]
fn cancelling_a_second_drain_keeps_the_service_disabled() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let first = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-first";
    disabled_by(&cloud, first);
    host.drain_named("second");
    host.found_drained();
    cloud.server("s1", "active");
    pending(&host);
    assert_eq!(cloud.service(HOST)["disabled_reason"], json!(first));
    // The migrations of this drain are still aborted.
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(
        (cloud.service(HOST)["status"].clone(), cloud.count("PUT")),
        (json!("disabled"), 0)
    );
    host.drain_named("maintenance-complete");
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn a_service_enabled_since_is_disabled_again_and_enabled_by_a_cancel() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.drain_named("second");
    host.found_drained();
    cloud.server("s1", "active");
    pending(&host);
    assert_eq!(
        cloud.service(HOST)["disabled_reason"],
        json!("scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-second")
    );
    cloud.end_all("completed");
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

/// Two clusters with one Nova, and a node of the same name in both.
#[test]
fn the_host_of_another_clusters_node_of_that_name_is_left_alone() {
    let theirs = "scupper: node=node-1 cluster=elsewhere drain=d9";
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.services[1]["status"] = json!("disabled");
        state.services[1]["disabled_reason"] = json!(theirs);
        state.services.push(super::nova::service("compute-c"));
    });
    cloud.server("s1", "active");
    pending(&host);
    let ours = MARK;
    assert_eq!(cloud.service(HOST)["disabled_reason"], json!(ours));
    while step(&host, Phase::OnCancel) != Outcome::Done {
        cloud.end_all("cancelled");
    }
    host.drain_named("maintenance-complete");
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
    assert_eq!(cloud.service("compute-b")["disabled_reason"], json!(theirs));
}

#[test]
fn a_configured_name_of_the_cluster_stands_in_the_mark() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("cluster", "east");
    cloud.server("s1", "active");
    pending(&host);
    let mark = "scupper: node=node-1 cluster=east drain=uid-of-maintenance";
    assert_eq!(cloud.service(HOST)["disabled_reason"], json!(mark));
}

/// An earlier drain has left its mark on another host, which has the node's name no longer.
#[test]
fn a_cancel_looks_at_the_host_that_its_own_drain_has_disabled() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        let earlier = "scupper: node=node-1 cluster=uid-of-cluster drain=earlier";
        let mut left = super::nova::service("compute-0");
        left["status"] = json!("disabled");
        left["disabled_reason"] = json!(earlier);
        state.services.insert(0, left);
    });
    cloud.server("s1", "active");
    pending(&host);
    assert!(
        matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)),
        "a migration runs"
    );
    cloud.end_all("cancelled");
    while step(&host, Phase::OnCancel) != Outcome::Done {}
    assert_eq!(cloud.service(HOST)["status"], "enabled");
    assert_eq!(cloud.service("compute-0")["status"], "disabled");
}
