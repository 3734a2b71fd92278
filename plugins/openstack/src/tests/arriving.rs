//! Servers that Nova had sent to the host before it was disabled.

use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::{Value, json};

use super::nova::{Cloud, HOST};
use super::{pending, step, waits};

#[test]
fn a_server_built_before_the_host_is_disabled_is_awaited_and_migrated() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.building("late", "2027-01-15T08:00:30Z");
    for _ in 0..3 {
        assert_eq!(
            waits(&pending(&host)),
            ["server vm-late (late): starting, and Nova has not named its host yet"]
        );
        cloud.pass(&host, 1);
    }
    cloud.with(|state| state.servers.clear());
    cloud.server("late", "active");
    pending(&host);
    assert_eq!(cloud.count("POST /servers/late/action"), 1);
    cloud.end_all("completed");
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
}

#[test]
fn a_server_on_this_host_is_awaited_until_it_is_built() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("late", "building");
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    assert_eq!(
        waits(&pending(&host)),
        ["server vm-late (late): waiting for Nova's task building to end"]
    );
    cloud.set("late", "OS-EXT-STS:vm_state", json!("active"));
    pending(&host);
    assert_eq!(cloud.count("POST /servers/late/action"), 1);
}

#[test]
fn a_server_requested_later_or_long_ago_is_not_awaited() {
    for created in ["2027-01-15T08:01:30Z", "2027-01-15T07:50:00Z"] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        cloud.building("other", created);
        let words = pending(&host).progress;
        assert!(words.contains("checking once more"), "{created}: {words}");
    }
}

#[test]
fn a_server_that_never_gets_a_host_is_awaited_for_five_minutes() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.building("lost", "2027-01-15T08:00:30Z");
    pending(&host);
    for seconds in [20, 280] {
        assert_eq!(waits(&pending(&host)).len(), 1);
        cloud.pass(&host, seconds);
    }
    cloud.pass(&host, 2);
    assert!(pending(&host).progress.contains("checking once more"));
}

#[test]
fn a_server_that_is_being_unshelved_is_awaited() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.building("late", "2020-01-01T00:00:00Z");
    cloud.set("late", "status", json!("SHELVED_OFFLOADED"));
    cloud.set("late", "updated", json!("2027-01-15T08:00:30Z"));
    cloud.set("late", "OS-EXT-STS:vm_state", json!("shelved_offloaded"));
    assert!(pending(&host).progress.contains("checking once more"));
    cloud.set("late", "OS-EXT-STS:task_state", json!("unshelving"));
    let host = Host::new();
    let again = Cloud::new(&host);
    again.with(|state| std::mem::swap(&mut state.servers, &mut cloud.0.borrow_mut().servers));
    assert_eq!(waits(&pending(&host)).len(), 1);
}

#[test]
fn a_migration_without_a_recorded_destination_is_awaited() {
    for (status, kind) in [
        ("accepted", "live-migration"),
        ("accepted", "evacuation"),
        ("pre-migrating", "migration"),
        ("pre-migrating", "resize"),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        cloud.migration(7, "late", "compute-b", HOST, status, kind);
        cloud.with(|state| state.migrations[0]["dest_compute"] = Value::Null);
        assert_eq!(
            waits(&pending(&host)),
            ["server late: migrating from compute-b, and Nova has not named the destination yet"]
        );
        // To another one.
        cloud.with(|state| state.migrations[0]["dest_compute"] = json!("compute-c"));
        assert!(pending(&host).progress.contains("checking once more"), "{status}");
    }
}
