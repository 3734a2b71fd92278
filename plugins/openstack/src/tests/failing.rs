//! Failures and how they are reported.

use scupper_sdk::http::{Error, Method, Response};
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::nova::{Cloud, HOST};
use super::{failed, pending, step, waits};

/// One attempt only.
fn once(host: &Host) {
    host.config("attempts", "1");
}

#[test]
fn the_reason_comes_from_novas_instance_action() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    once(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.end_all("error");
    cloud.with(|state| {
        state.events = json!([
            {"event": "conductor_live_migrate_instance", "result": "Error", "details": "No valid host was found."},
            {"event": "compute_check", "result": "Success", "details": null},
        ]);
    });
    let message = failed(&host, Phase::BeforeDrain);
    assert_eq!(
        message,
        "1 of 1 server stays on compute-a: server vm-s1 (s1): No valid host was found; compute-b is enabled and up, but full, filtered out or in another cell"
    );
}

#[test]
fn a_failed_migration_with_only_successful_events_counts_as_failed() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    once(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.end_all("failed");
    cloud.with(|state| state.events = json!([{"event": "compute_live_migration", "result": "Success"}]));
    let message = failed(&host, Phase::BeforeDrain);
    assert!(
        message.contains("migration 1 is failed") && message.contains("req-1"),
        "{message}"
    );
}

#[test]
fn a_failed_migration_is_retried_after_a_pause_up_to_a_limit() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("attempts", "2");
    host.config("retry-seconds", "5");
    cloud.server("s1", "active");
    pending(&host);
    cloud.end_all("error");
    assert!(waits(&pending(&host))[0].contains("retry in 5 s"));
    assert_eq!(cloud.count("POST /servers/s1/action"), 1);
    cloud.pass(&host, 6);
    pending(&host);
    assert_eq!(cloud.count("POST /servers/s1/action"), 2);
    cloud.end_all("error");
    failed(&host, Phase::BeforeDrain);
    // Further steps change nothing.
    failed(&host, Phase::BeforeDrain);
    assert_eq!(cloud.count("POST /servers/s1/action"), 2);
}

#[test]
fn an_attempt_that_fails_between_two_lists_is_counted() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    once(&host);
    cloud.server("s1", "active");
    let (inner, mut lists) = (cloud.clone(), 0);
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            lists += usize::from(request.url.contains("/servers/detail?all_tenants=1&host="));
            if lists == 2 {
                lists += 1;
                inner.migration(1, "s1", HOST, "compute-b", "error", "live-migration");
            }
            None
        });
    });
    pending(&host);
    assert_eq!(cloud.count("POST /servers/s1/action"), 0);
    failed(&host, Phase::BeforeDrain);
}

#[test]
fn one_stuck_server_does_not_stop_the_others() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    once(&host);
    host.config("parallel", "1");
    cloud.server("s1", "active");
    cloud.server("s2", "active");
    pending(&host);
    cloud.end_all("failed");
    let in_progress = pending(&host);
    assert!(in_progress.progress.contains("1 stuck"), "{in_progress:?}");
    assert_eq!(cloud.count("POST /servers/s2/action"), 1);
    cloud.end_all("completed");
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.starts_with("1 of 2 servers stay"), "{message}");
}

#[test]
fn a_completed_migration_with_an_unchanged_host_needs_an_operator() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.end_all("completed");
    cloud.set("s1", "host", json!(HOST));
    // Nova may update the record a moment later.
    pending(&host);
    cloud.pass(&host, 11);
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.contains("check it by hand"), "{message}");
}

#[test]
fn a_409_for_a_vm_state_or_a_device_ends_with_novas_message() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("attempts", "2");
    cloud.server("s1", "active");
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            let refused = request.method == Method::Post && request.url.ends_with("/action");
            refused.then(|| {
                Ok(Response::new(
                    409,
                    r#"{"conflictingRequest": {"message": "not supported for vTPM"}}"#,
                ))
            })
        });
    });
    pending(&host);
    cloud.pass(&host, 10);
    pending(&host);
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.contains("not supported for vTPM"), "{message}");
    assert_eq!(cloud.count("POST /servers/s1/action"), 3);
}

#[test]
fn a_409_for_a_task_is_retried() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    once(&host);
    cloud.server("s1", "active");
    let (inner, mut first) = (cloud.clone(), true);
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            if first && request.method == Method::Post && request.url.ends_with("/action") {
                first = false;
                inner.set("s1", "OS-EXT-STS:task_state", json!("rebooting"));
            }
            None
        });
    });
    pending(&host);
    cloud.set("s1", "OS-EXT-STS:task_state", json!(null));
    pending(&host);
    assert_eq!(cloud.with(|state| state.migrations.len()), 1);
}

#[test]
fn a_migration_is_aborted_and_reported_at_its_deadline() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("server-deadline-seconds", "5");
    cloud.server("s1", "active");
    pending(&host);
    pending(&host);
    assert_eq!(cloud.count("DELETE /servers"), 0);
    cloud.pass(&host, 6);
    pending(&host);
    assert_eq!(cloud.count("DELETE /servers/s1/migrations/1"), 1);
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.contains("aborted at its deadline"), "{message}");
    assert_eq!(cloud.count("POST /servers/s1/action"), 1);
}

#[test]
fn a_migration_is_forced_only_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("server-deadline-seconds", "5");
    host.config("on-deadline", "force-complete");
    cloud.server("s1", "active");
    pending(&host);
    pending(&host);
    cloud.pass(&host, 6);
    pending(&host);
    pending(&host);
    assert_eq!(cloud.count("POST /servers/s1/migrations/1/action"), 1);
    assert_eq!(cloud.count("DELETE /servers"), 0);
}

#[test]
fn retry_after_is_respected_on_429_and_503() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let answers = [
        (429, Some("7"), 7_000),
        (503, None, 5_000),
        (502, Some("0"), 1_000),
        (500, Some("9999"), 300_000),
    ];
    for (status, after, pause) in answers {
        cloud.with(|state| {
            state.instead = Box::new(move |request| {
                let nova = request.url.contains("/servers/detail");
                let response = Response::new(status, "busy");
                nova.then(|| {
                    Ok(match after {
                        Some(after) => response.with_header("Retry-After", after),
                        None => response,
                    })
                })
            });
        });
        let waiting = pending(&host);
        assert_eq!(waiting.again_after, pause, "{status}");
        assert!(waiting.progress.contains(&status.to_string()), "{waiting:?}");
    }
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn a_lost_response_does_not_begin_a_second_migration() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    let (inner, mut first) = (cloud.clone(), true);
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            if !first || request.method != Method::Post || !request.url.ends_with("/action") {
                return None;
            }
            first = false;
            inner.migration(1, "s1", HOST, "compute-b", "running", "live-migration");
            inner.set("s1", "OS-EXT-STS:task_state", json!("migrating"));
            Some(Err(Error::Broken("connection reset".to_owned())))
        });
    });
    assert!(pending(&host).progress.contains("connection reset"));
    pending(&host);
    assert_eq!(cloud.count("POST /servers/s1/action"), 1);
    assert_eq!(cloud.with(|state| state.migrations.len()), 1);
}

/// A list is of use only as a whole.
#[test]
fn a_list_that_does_not_fit_into_a_step_is_not_asked_for_again_at_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.page = 1);
    for number in 0..80 {
        cloud.server(&format!("s{number:02}"), "active");
    }
    for _ in 0..10 {
        let before = cloud.with(|state| state.asked.len());
        let waiting = pending(&host);
        assert!(cloud.with(|state| state.asked.len()) - before <= 64);
        assert_eq!(
            waiting.progress,
            "reached a step's limit for Nova (56 requests, 15 s); the next step begins anew: Nova is slow, or its lists are long"
        );
        assert_eq!(waiting.again_after, 3_000);
    }
}

#[test]
fn a_403_is_fatal_and_names_the_rule() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            let body = r#"{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:os-services:list to be performed."}}"#;
            request
                .url
                .contains("os-services")
                .then(|| Ok(Response::new(403, body)))
        });
    });
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        let message = failed(&host, phase);
        assert!(message.contains("os_compute_api:os-services:list"), "{message}");
    }
}

#[test]
fn a_dead_source_is_reported_while_the_drain_waits_for_it() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    let waiting = pending(&host);
    assert!(
        waiting.progress.contains("nova-compute on compute-a is down"),
        "{waiting:?}"
    );
    assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Pending(_)));
}

/// As Nova leaves them when nova-compute is killed and starts again: the task is reset, the record is not.
fn lose_all(cloud: &Cloud, status: &str) {
    cloud.with(|state| {
        for migration in &mut state.migrations {
            migration["status"] = json!(status);
        }
        for server in &mut state.servers {
            server["OS-EXT-STS:task_state"] = json!(null);
        }
    });
}

#[test]
fn a_migration_that_a_restart_of_nova_compute_has_lost_is_a_failed_attempt() {
    for status in ["accepted", "queued", "preparing", "running"] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("attempts", "2");
        cloud.server("s1", "active");
        pending(&host);
        lose_all(&cloud, status);
        // Nova may not have updated both yet.
        cloud.pass(&host, 60);
        let words = format!("server vm-s1 (s1): live migration to compute-b {status}");
        assert_eq!(waits(&pending(&host)), [words]);
        cloud.pass(&host, 1);
        pending(&host);
        assert_eq!(cloud.count("POST /servers/s1/action"), 2, "{status}");
        lose_all(&cloud, status);
        cloud.pass(&host, 61);
        let lost = format!(
            "migration 2 is {status}, but Nova no longer carries it out, and Nova records no cause: see nova-compute's log, request req-1"
        );
        let message = failed(&host, Phase::BeforeDrain);
        assert!(message.contains(&lost), "{message}");
        let events = host.events();
        let told = events
            .iter()
            .filter(|event| event.contains("no longer carries it out"));
        assert_eq!(told.count(), 3, "two attempts and the end: {events:?}");
    }
}

/// Nova ends the server's task first, and then removes networks, volumes and disks from the destination.
#[test]
fn a_migration_that_nova_still_rolls_back_is_not_lost() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.pass(&host, 600);
    lose_all(&cloud, "preparing");
    cloud.set("s1", "updated", json!(cloud.now()));
    for seconds in [0, 60] {
        cloud.pass(&host, seconds);
        let words = "server vm-s1 (s1): live migration to compute-b preparing";
        assert_eq!(waits(&pending(&host)), [words], "{seconds}");
    }
    cloud.pass(&host, 1);
    pending(&host);
    assert_eq!(cloud.count("POST /servers/s1/action"), 2);
}

#[test]
fn the_record_of_a_migration_does_not_hold_the_drain_if_its_server_is_at_rest_elsewhere_or_gone() {
    for gone in [false, true] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        cloud.server("s1", "active");
        pending(&host);
        cloud.migration(2, "s2", "compute-b", HOST, "queued", "live-migration");
        lose_all(&cloud, "queued");
        cloud.set("s1", "host", json!("compute-b"));
        if gone {
            cloud.with(|state| state.servers.clear());
        }
        assert_eq!(waits(&pending(&host)).len(), 2);
        cloud.pass(&host, 61);
        assert!(pending(&host).progress.contains("checking once more"), "{gone}");
        assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    }
}

#[test]
fn the_end_names_the_reason_of_a_refused_cold_migration() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    once(&host);
    host.config("stopped", "cold");
    cloud.server("s1", "stopped");
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            let cold = request.method == Method::Post && request.body == br#"{"migrate":null}"#;
            cold.then(|| {
                Ok(Response::new(
                    409,
                    r#"{"conflictingRequest": {"message": "locked"}}"#,
                ))
            })
        });
    });
    pending(&host);
    assert_eq!(
        failed(&host, Phase::BeforeDrain),
        "1 of 1 server stays on compute-a: server vm-s1 (s1): Nova refuses to migrate it: 409 locked"
    );
}
