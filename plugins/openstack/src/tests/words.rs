//! What people read while a drain waits.

use scupper_sdk::http::{Error, Method, Request, Response};
use scupper_sdk::testing::Host;
use scupper_sdk::{Phase, Severity};
use serde_json::{Value, json};

use super::nova::{Cloud, HOST};
use super::{failed, pending, step, waits};
use crate::OpenStack;

const MIB: u64 = 1024 * 1024;

/// Nova reports so many transferred MiB of the running migration, now.
fn transfers(cloud: &Cloud, moved: u64) {
    let now = cloud.now();
    let memory = json!([{
        "id": 1, "server_uuid": "s1", "status": "running", "updated_at": now, "memory_total_bytes": 256 * MIB,
        "memory_processed_bytes": moved * MIB, "memory_remaining_bytes": (256 - moved) * MIB,
    }]);
    cloud.with(|state| state.memory = memory);
}

#[test]
fn the_rate_of_a_migration_that_stalls_falls_to_zero_and_it_says_since_when() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    for moved in [0, 64, 128] {
        transfers(&cloud, moved);
        pending(&host);
        cloud.pass(&host, 1);
    }
    transfers(&cloud, 128);
    let stalled = pending(&host);
    assert!(
        waits(&stalled)[0].ends_with("128 MiB to go, 64 MiB/s"),
        "{stalled:?}"
    );
    for _ in 0..5 {
        cloud.pass(&host, 4);
        transfers(&cloud, 128);
        pending(&host);
    }
    let stalled = pending(&host);
    assert!(
        waits(&stalled)[0].ends_with("128 MiB to go, nothing transferred for 21 s"),
        "{stalled:?}"
    );
    assert!(!stalled.progress.contains("MiB/s"), "{stalled:?}");
    cloud.pass(&host, 1);
    transfers(&cloud, 150);
    assert!(waits(&pending(&host))[0].ends_with("106 MiB to go, 1 MiB/s"));
}

#[test]
fn a_server_with_a_task_has_a_since_and_after_a_minute_a_next_step() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.set("s1", "OS-EXT-STS:task_state", json!("rebuilding"));
    cloud.set("s1", "updated", json!("2027-01-15T08:00:30Z"));
    let first = pending(&host);
    assert_eq!(
        waits(&first),
        ["server vm-s1 (s1): waiting for Nova's task rebuilding to end"]
    );
    assert_eq!(first.waiting_for[0].since, Some(1_800_000_030_000));
    cloud.pass(&host, 60);
    assert_eq!(
        waits(&pending(&host)),
        [
            "server vm-s1 (s1): waiting for Nova's task rebuilding to end; if it never does, see nova-compute's log, then \
             reset it: openstack server set --state active s1"
        ]
    );
}

#[test]
fn a_time_out_names_its_request_and_what_it_was_for() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let late = |method: Method| {
        move |request: &Request| {
            let is_it = request.method == method && request.url.contains("8774");
            is_it.then(|| Err(Error::Timeout("not complete within 10 s".to_owned())))
        }
    };
    cloud.with(|state| state.instead = Box::new(late(Method::Put)));
    let words = "disabling nova-compute on compute-a: Nova, PUT /os-services/id-of-compute-a: timed out: not complete \
                 within 10 s";
    assert_eq!(pending(&host).progress, words);
    cloud.with(|state| state.instead = Box::new(|_| None));
    cloud.server("s1", "active");
    cloud.with(|state| state.instead = Box::new(late(Method::Post)));
    let words = "requesting the migration of server vm-s1 (s1): Nova, POST /servers/s1/action: timed out";
    let waiting = pending(&host);
    assert!(waiting.progress.starts_with(words), "{waiting:?}");
}

/// Near its end a migrating server is no longer in the host's list, and an incoming one not yet.
#[test]
fn servers_that_are_not_in_the_hosts_list_are_named() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    for id in ["leaves", "comes"] {
        cloud.server(id, "active");
        cloud.set(id, "host", json!("compute-b"));
        cloud.set(id, "OS-EXT-STS:task_state", json!("migrating"));
    }
    cloud.migration(1, "leaves", HOST, "compute-b", "post-migrating", "live-migration");
    cloud.migration(2, "comes", "compute-b", HOST, "running", "live-migration");
    let waiting = pending(&host);
    let named: Vec<&str> = waiting.waiting_for.iter().map(|on| on.what.as_str()).collect();
    assert_eq!(named, ["server vm-comes (comes)", "server vm-leaves (leaves)"]);
    // A cancel has another state than the drain.
    let cancel = format!("{:?}", step(&host, Phase::OnCancel));
    assert!(cancel.contains("server vm-leaves (leaves)"), "{cancel}");
}

#[test]
fn a_server_whose_host_is_not_named_yet_has_its_name() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("late", "active");
    cloud.set("late", "host", json!("compute-b"));
    cloud.migration(7, "late", "compute-b", HOST, "accepted", "live-migration");
    cloud.with(|state| state.migrations[0]["dest_compute"] = Value::Null);
    assert_eq!(pending(&host).waiting_for[0].what, "server vm-late (late)");
}

fn refuses(cloud: &Cloud, message: &'static str) {
    let refused = move |request: &Request| {
        let is_it = request.method == Method::Post && request.url.ends_with("/action");
        let body = json!({"conflictingRequest": {"message": message}}).to_string();
        is_it.then(|| Ok(Response::new(409, body)))
    };
    cloud.with(|state| state.instead = Box::new(refused));
}

#[test]
fn a_refused_migration_is_no_moving_one_and_is_retried_after_a_pause_that_doubles() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("retry-seconds", "5");
    cloud.server("s1", "active");
    refuses(&cloud, "no room");
    let posts = |cloud: &Cloud| cloud.count("POST /servers/s1/action");
    let first = pending(&host);
    assert!(
        first
            .progress
            .starts_with("0 of 1 server has left compute-a, 0 moving"),
        "{first:?}"
    );
    assert_eq!(
        waits(&first),
        ["server vm-s1 (s1): Nova refuses to migrate it: 409 no room; retry in 5 s"]
    );
    let event =
        "Warning ServerMigrationFailed of node-1: server vm-s1 (s1): Nova refuses to migrate it: 409 no room";
    assert!(
        host.events().iter().any(|emitted| emitted == event),
        "{:?}",
        host.events()
    );
    cloud.pass(&host, 3);
    assert_eq!(
        waits(&pending(&host)),
        ["server vm-s1 (s1): Nova refused to migrate it; retry in 2 s"]
    );
    assert_eq!(posts(&cloud), 1);
    cloud.pass(&host, 2);
    pending(&host);
    assert_eq!(posts(&cloud), 2);
    cloud.pass(&host, 9);
    assert!(waits(&pending(&host))[0].ends_with("retry in 1 s"));
    assert_eq!(posts(&cloud), 2);
    cloud.pass(&host, 1);
    pending(&host);
    assert_eq!(posts(&cloud), 3);
    // The last request is for Nova's words.
    assert!(failed(&host, Phase::BeforeDrain).contains("409 no room"));
    assert_eq!(posts(&cloud), 4);
}

#[test]
fn no_valid_host_is_explained_by_the_other_hosts() {
    for (change, words) in [
        (
            json!({"status": "disabled", "disabled_reason": "ticket 9"}),
            "compute-b is disabled: ticket 9",
        ),
        (
            json!({"status": "disabled", "disabled_reason": null}),
            "compute-b is disabled: no reason given",
        ),
        (
            json!({"status": "disabled", "disabled_reason": "scupper: node=node-2 cluster=c drain=d"}),
            "compute-b is disabled by scupper: node=node-2 cluster=c drain=d",
        ),
        (json!({"state": "down"}), "compute-b is down"),
        (
            json!({}),
            "compute-b is enabled and up, but full, filtered out or in another cell",
        ),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("attempts", "1");
        cloud.server("s1", "active");
        pending(&host);
        cloud.end_all("error");
        cloud.with(|state| {
            state.events = json!([{"event": "e", "result": "Error", "details": "No valid host was found."}]);
            for (key, value) in change.as_object().unwrap() {
                state.services[1][key] = value.clone();
            }
        });
        let message = failed(&host, Phase::BeforeDrain);
        assert_eq!(
            message,
            format!("1 of 1 server stays on compute-a: server vm-s1 (s1): No valid host was found; {words}")
        );
        let event = format!("server vm-s1 (s1): No valid host was found; {words}");
        assert!(
            host.events().iter().any(|emitted| emitted.ends_with(&event)),
            "{:?}",
            host.events()
        );
    }
}

#[test]
fn a_server_that_cannot_be_migrated_says_why_at_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("attempts", "1");
    for id in ["s1", "s2", "s3"] {
        cloud.server(id, "active");
    }
    pending(&host);
    cloud.set("s3", "OS-EXT-STS:vm_state", json!("error"));
    cloud.set("s3", "fault", json!({"message": "disk is gone"}));
    let says = |words: &str| {
        let waiting = waits(&pending(&host));
        assert!(waiting.iter().any(|on| on == words), "{waiting:?}");
    };
    says("server vm-s3 (s3): error, cannot be migrated (disk is gone)");
    cloud.with(|state| {
        state.migrations[0]["status"] = json!("failed");
        state.servers[0]["OS-EXT-STS:task_state"] = Value::Null;
    });
    says("server vm-s1 (s1): its last attempt, migration 1, is failed; see the Event ServerMigrationFailed");
}

#[test]
fn the_check_of_an_old_nova_names_the_remedy() {
    for newest in ["2.42", ""] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        cloud.with(|state| state.newest = newest);
        let findings = host.check::<OpenStack>();
        let found = findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
            .unwrap();
        assert_eq!(
            (found.subject.as_str(), found.fix.as_str()),
            (
                "microversion",
                "upgrade Nova to 16 (Pike) or later, or correct the endpoint: it must be that of Nova's API v2.1"
            )
        );
    }
}
