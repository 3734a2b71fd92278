//! What a cancel aborts, what it awaits, and what it says meanwhile.

use scupper_sdk::http::Response;
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::emptying::MARK;
use super::nova::{Cloud, HOST};
use super::restoring::disabled_by;
use super::{pending, step, waits};

/// A moment of the drain, by Nova's clock.
const DURING: &str = "2027-01-15T08:00:50.000000";

#[test]
fn cancel_does_not_touch_migrations_of_other_users() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(&cloud, MARK);
    cloud.migration(7, "s1", HOST, "compute-b", "running", "live-migration");
    cloud.with(|state| state.migrations[0]["user_id"] = json!("somebody"));
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.count("DELETE /servers"), 0);
}

/// The operator and the policy use the same account.
#[test]
fn cancel_does_not_touch_migrations_that_began_before_the_drain() {
    let before = "2027-01-15T08:00:30.000000";
    let host = Host::new();
    let cloud = Cloud::new(&host);
    disabled_by(&cloud, MARK);
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

#[test]
fn before_2_65_accepted_and_queued_migrations_are_aborted_once_they_run() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.newest = "2.64");
    disabled_by(&cloud, MARK);
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
        assert_eq!(
            pending.progress,
            "nova-compute on compute-a does not respond; it stays disabled until it does, or until the uncordon; 1 migration \
             cannot be aborted: server vm-s1 (s1)"
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

/// The abort was sent while nova-compute still counted as up.
#[test]
fn nova_compute_that_falls_silent_during_a_cancel_is_reported_too() {
    let host = Host::new();
    let cloud = asked_without_a_record(&host, "u1", DURING);
    for state in ["up", "down", "down"] {
        cloud.with(|cloud| cloud.services[0]["state"] = json!(state));
        assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    }
    let events = host.events();
    let told = events
        .iter()
        .filter(|event| event.contains("ServerMigrationNotAborted"));
    assert_eq!(told.count(), 1, "{events:?}");
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

/// Nova has accepted the request; its conductor has not recorded the migration.
fn asked_without_a_record(host: &Host, user: &'static str, at: &'static str) -> Cloud {
    let cloud = Cloud::new(host);
    disabled_by(&cloud, MARK);
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
        assert_eq!(
            pending.progress,
            "1 migration from compute-a is being aborted: server vm-s1 (s1)"
        );
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
    disabled_by(&cloud, MARK);
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

/// The end of the drain and `scupper status` show the progress, and of what the cancel waits for only the first.
#[test]
fn the_progress_of_a_cancel_names_each_server_that_may_still_leave() {
    let host = Host::new();
    let cloud = asked_without_a_record(&host, "u1", DURING);
    cloud.server("s2", "active");
    cloud.set("s2", "OS-EXT-STS:task_state", json!("migrating"));
    cloud.migration(1, "s2", HOST, "compute-b", "running", "live-migration");
    for (state, words) in [
        ("down", "2 migrations cannot be aborted"),
        ("up", "2 migrations from compute-a are being aborted"),
    ] {
        cloud.with(|cloud| cloud.services[0]["state"] = json!(state));
        let Outcome::Pending(pending) = step(&host, Phase::OnCancel) else {
            panic!("the migrations are in progress");
        };
        let named = format!("{words}: server vm-s2 (s2); server vm-s1 (s1)");
        assert!(pending.progress.ends_with(&named), "{pending:?}");
        assert_eq!(waits(&pending).len(), 2, "{pending:?}");
    }
}
