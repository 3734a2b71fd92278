//! Kubernetes Events of the node: one for each change, after any number of steps.

use scupper_sdk::http::{Error, Method, Request};
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::emptying::MARK;
use super::nova::{Cloud, HOST};
use super::{failed, pending, step};

const DISABLED: &str = "Normal ComputeServiceDisabled of node-1: nova-compute on compute-a is disabled for maintenance: Nova \
                        schedules no more servers here";
const ENABLED: &str =
    "Normal ComputeServiceEnabled of node-1: nova-compute on compute-a is enabled again: maintenance";

#[test]
fn disabling_and_enabling_emit_one_event_each() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    assert_eq!(host.events(), [] as [String; 0]);
    for _ in 0..3 {
        pending(&host);
    }
    cloud.end_all("completed");
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    assert_eq!(host.events(), [DISABLED]);
    for _ in 0..2 {
        assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    }
    assert_eq!(host.events(), [DISABLED, ENABLED]);
}

#[test]
fn disabling_is_reported_even_if_the_response_was_lost() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.with(|state| {
        let lost = |request: &Request| matches!(request.method, Method::Put);
        state.instead = Box::new(move |request| {
            lost(request).then(|| Err(Error::Timeout("no answer within 20 s".to_owned())))
        });
    });
    pending(&host);
    assert_eq!(host.events(), [] as [String; 0]);
    // The request took effect nevertheless.
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!(MARK);
    });
    for _ in 0..3 {
        pending(&host);
    }
    assert_eq!(host.events(), [DISABLED]);
}

#[test]
fn an_unsent_disabled_event_is_sent_later() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    host.outage(Some("the API server does not answer"));
    pending(&host);
    assert_eq!(host.events(), [] as [String; 0]);
    host.outage(None);
    pending(&host);
    pending(&host);
    assert_eq!(host.events(), [DISABLED]);
}

#[test]
fn a_service_disabled_before_is_reported_and_never_enabled() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!("kernel update");
    });
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(
        host.events(),
        [
            "Normal ComputeServiceFoundDisabled of node-1: nova-compute on compute-a was already disabled: kernel update; \
             drain and uncordon keep it disabled",
            "Warning ComputeServiceStaysDisabled of node-1: nova-compute on compute-a stays disabled: kernel update; \
             Scupper did not disable it; to enable it: `openstack compute service set --enable compute-a nova-compute`",
        ]
    );
}

#[test]
fn each_failure_is_reported_once_with_novas_reason() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("attempts", "2");
    host.config("retry-seconds", "5");
    cloud.server("s1", "active");
    cloud.with(|state| {
        state.events = json!([{"event": "e", "result": "Error", "details": "No valid host\nwas found."}]);
    });
    pending(&host);
    cloud.end_all("error");
    for _ in 0..3 {
        pending(&host);
    }
    let failure = "Warning ServerMigrationFailed of node-1: server vm-s1 (s1): No valid host was found; compute-b is enabled and up, but full, filtered out or in another cell";
    assert_eq!(host.events(), [DISABLED, failure]);
    cloud.pass(&host, 6);
    pending(&host);
    cloud.end_all("error");
    let message = failed(&host, Phase::BeforeDrain);
    let stays = format!("Warning ServersLeftBehind of node-1: {message}");
    assert_eq!(host.events(), [DISABLED, failure, failure, &stays]);
}

#[test]
fn an_unsent_failure_event_is_sent_later() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.end_all("failed");
    host.outage(Some("the API server does not answer"));
    pending(&host);
    assert_eq!(host.events(), [DISABLED]);
    host.outage(None);
    pending(&host);
    pending(&host);
    assert_eq!(host.events().len(), 2, "{:?}", host.events());
}

#[test]
fn a_cancelled_migration_is_reported_unless_it_is_another_users() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.server("s2", "active");
    cloud.migration(90, "s2", HOST, "compute-b", "failed", "live-migration");
    cloud.with(|state| state.migrations[0]["user_id"] = json!("somebody"));
    pending(&host);
    cloud.with(|state| state.migrations[1]["status"] = json!("cancelled"));
    pending(&host);
    assert_eq!(
        host.events(),
        [
            DISABLED,
            "Warning ServerMigrationFailed of node-1: server vm-s1 (s1): cancelled, but not by this drain"
        ]
    );
}

#[test]
fn an_overdue_migration_is_reported_once_for_every_on_deadline() {
    for (choice, reported) in [
        (
            "abort",
            Some(
                "Aborted of node-1: server vm-s1 (s1): migration 1 has been running for longer than 5 s and is being aborted",
            ),
        ),
        (
            "force-complete",
            Some(
                "Forced of node-1: server vm-s1 (s1): migration 1 has been running for longer than 5 s and is forced to complete",
            ),
        ),
        ("wait", None),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("server-deadline-seconds", "5");
        host.config("on-deadline", choice);
        cloud.server("s1", "active");
        // Nova accepts the request, but the migration continues.
        cloud.with(|state| {
            state.instead = Box::new(|request| {
                (request.method == Method::Delete).then(|| Ok(scupper_sdk::http::Response::new(202, "")))
            });
        });
        pending(&host);
        pending(&host);
        cloud.pass(&host, 6);
        for _ in 0..3 {
            pending(&host);
        }
        let expected: Vec<String> = [DISABLED.to_owned()]
            .into_iter()
            .chain(reported.map(|reported| format!("Warning ServerMigration{reported}")))
            .collect();
        assert_eq!(host.events(), expected);
    }
}

#[test]
fn an_abort_at_the_deadline_is_not_also_reported_as_a_failure() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("server-deadline-seconds", "5");
    cloud.server("s1", "active");
    pending(&host);
    pending(&host);
    cloud.pass(&host, 6);
    pending(&host);
    failed(&host, Phase::BeforeDrain);
    let reasons: Vec<String> = host
        .events()
        .iter()
        .map(|event| event.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(
        reasons,
        [
            "ComputeServiceDisabled",
            "ServerMigrationAborted",
            "ServersLeftBehind"
        ]
    );
}

#[test]
fn a_cancel_reports_each_abort_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            (request.method == Method::Delete).then(|| Ok(scupper_sdk::http::Response::new(202, "")))
        });
    });
    for _ in 0..3 {
        assert!(matches!(step(&host, Phase::OnCancel), Outcome::Pending(_)));
    }
    cloud.end_all("cancelled");
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(
        host.events(),
        [
            DISABLED,
            "Warning ServerMigrationAborted of node-1: server vm-s1 (s1): migration 1 is being aborted because the \
             drain has ended",
            ENABLED,
        ]
    );
}

#[test]
fn servers_that_stay_as_configured_are_reported_at_the_end() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("others", "ignore");
    cloud.server("s1", "stopped");
    cloud.server("s2", "error");
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    assert_eq!(
        host.events(),
        [
            DISABLED,
            "Normal ServersLeftBehind of node-1: 2 servers stay on compute-a, as configured: server vm-s1 (s1): shut off; \
             server vm-s2 (s2): error, cannot be migrated"
        ]
    );
}
