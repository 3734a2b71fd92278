//! The mark, cancelling, and enabling.

use scupper_sdk::http::Response;
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::nova::{Cloud, HOST};
use super::{failed, pending, step, waits};

/// A moment of the drain, by Nova's clock.
const DURING: &str = "2027-01-15T08:00:50.000000";

fn disabled_by(cloud: &Cloud, reason: &str) {
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
    disabled_by(
        &cloud,
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance",
    );
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
fn cancel_does_not_touch_migrations_of_other_users() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(
        &cloud,
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance",
    );
    cloud.migration(7, "s1", HOST, "compute-b", "running", "live-migration");
    cloud.with(|state| state.migrations[0]["user_id"] = json!("somebody"));
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.count("DELETE /servers"), 0);
}

#[test]
fn before_2_65_accepted_and_queued_migrations_are_aborted_once_they_run() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.newest = "2.64");
    disabled_by(
        &cloud,
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance",
    );
    for status in ["accepted", "queued", "preparing", "post-migrating"] {
        cloud.with(|state| state.migrations.clear());
        cloud.migration(7, "s1", HOST, "compute-b", status, "live-migration");
        assert!(
            matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)),
            "{status}"
        );
        assert_eq!(cloud.count("DELETE /servers"), 0, "{status}");
    }
    cloud.with(|state| state.migrations[0]["status"] = json!("running"));
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.count("DELETE /servers"), 1);
}

#[test]
fn while_nova_compute_is_silent_a_cancel_keeps_it_disabled_and_names_the_servers() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    for _ in 0..3 {
        let Outcome::Pending(pending) = step(&host, Phase::OnCancel) else {
            panic!("it does not wait");
        };
        assert!(
            pending
                .progress
                .contains("1 migration cannot be aborted; it stays disabled"),
            "{pending:?}"
        );
        assert!(
            waits(&pending)[0].starts_with("server vm-s1 (s1): it may still leave"),
            "{pending:?}"
        );
    }
    assert_eq!(cloud.service(HOST)["status"], "disabled");
    let events = host.events();
    let told = events
        .iter()
        .filter(|event| event.contains("ServerMigrationNotAborted"));
    assert_eq!(
        told.filter(|event| event.contains("server vm-s1 (s1)")).count(),
        1,
        "{events:?}"
    );
    // It responds again.
    cloud.with(|state| state.services[0]["state"] = json!("up"));
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn while_nova_compute_is_silent_a_cancel_of_nothing_enables_it() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    pending(&host);
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
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
        disabled_by(
            &cloud,
            "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance",
        );
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

/// Nova has accepted the request; its conductor has not recorded the migration.
fn asked_without_a_record(host: &Host, user: &'static str, at: &'static str) -> Cloud {
    let cloud = Cloud::new(host);
    disabled_by(
        &cloud,
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance",
    );
    cloud.server("s1", "active");
    cloud.set("s1", "OS-EXT-STS:task_state", json!("migrating"));
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            request.url.ends_with("/os-instance-actions").then(|| {
                let action =
                    json!({"action": "live-migration", "request_id": "r", "start_time": at, "user_id": user});
                let create =
                    json!({"action": "create", "request_id": "c", "start_time": "2026", "user_id": "u1"});
                Ok(Response::new(
                    200,
                    json!({"instanceActions": [create, action]}).to_string(),
                ))
            })
        });
    });
    cloud
}

#[test]
fn a_requested_migration_is_in_progress_before_nova_records_it() {
    let host = Host::new();
    let cloud = asked_without_a_record(&host, "u1", DURING);
    for _ in 0..3 {
        let Outcome::Pending(pending) = step(&host, Phase::OnCancel) else {
            panic!("the migration is in progress");
        };
        assert_eq!(pending.progress, "1 migration from compute-a is being aborted");
        assert!(waits(&pending)[0].contains("no migration yet"), "{pending:?}");
        assert_eq!(cloud.service(HOST)["status"], "disabled");
    }
    cloud.migration(1, "s1", HOST, "compute-b", "running", "live-migration");
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
    assert_eq!(cloud.with(|state| state.servers[0]["host"].clone()), json!(HOST));
}

#[test]
fn a_migration_requested_by_another_user_is_not_ours_before_nova_records_it() {
    let host = Host::new();
    let cloud = asked_without_a_record(&host, "somebody", DURING);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn a_request_with_a_lost_response_may_take_effect_after_the_cancel_began() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(
        &cloud,
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance",
    );
    cloud.server("s1", "active");
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.service(HOST)["status"], "disabled");
    cloud.set("s1", "OS-EXT-STS:task_state", json!("migrating"));
    cloud.migration(1, "s1", HOST, "compute-b", "running", "live-migration");
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
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
    let ours = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance";
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

/// nova-compute was killed and is up again: Nova has reset the server's task, and not the record.
#[test]
fn a_cancel_does_not_wait_for_a_migration_that_nova_has_lost() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.with(|state| state.migrations[0]["status"] = json!("queued"));
    cloud.set("s1", "OS-EXT-STS:task_state", json!(null));
    cloud.pass(&host, 61);
    assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.count("DELETE /servers"), 0);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

/// The operator and the policy use the same account.
#[test]
fn cancel_does_not_touch_migrations_that_began_before_the_drain() {
    let before = "2027-01-15T08:00:30.000000";
    let mark = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance";
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(&cloud, mark);
    cloud.server("s1", "active");
    cloud.set("s1", "OS-EXT-STS:task_state", json!("migrating"));
    cloud.migration(7, "s1", HOST, "compute-b", "running", "live-migration");
    cloud.with(|state| state.migrations[0]["created_at"] = json!(before));
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.count("DELETE /servers"), 0);
    // Without a record yet.
    let host = Host::new();
    let cloud = asked_without_a_record(&host, "u1", before);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}
