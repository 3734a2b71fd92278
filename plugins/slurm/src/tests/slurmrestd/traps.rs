//! Pitfalls of the real slurmrestd, by number. `host/scupper/tests/real_slurm` tests them on a real one.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase, http};
use serde_json::json;

use super::fake::{Fake, NODE, OURS, error, ok};

/// Whether a node in this state, without jobs, counts as drained.
fn is_drained(state: &[&str]) -> bool {
    let fake = Fake::new();
    fake.node(NODE, state, OURS);
    fake.run_until_stable() == Outcome::Done
}

#[test]
fn trap_01_the_stale_view_of_a_single_node_is_never_used() {
    let fake = Fake::busy();
    fake.step(Phase::BeforeCordon);
    fake.waits();
    fake.step(Phase::OnCancel);
    fake.step(Phase::AfterUncordon);
    let requests = fake.requests();
    assert!(requests.iter().any(|line| line == "GET nodes/"));
    assert!(
        !requests.iter().any(|line| line.starts_with("GET node/")),
        "{requests:?}"
    );
}

#[test]
fn trap_02_idle_and_drain_does_not_mean_that_no_job_is_there() {
    for state in [
        &["SUSPENDED"][..],
        &["RUNNING"],
        &["CONFIGURING"],
        &["RUNNING", "CONFIGURING"],
        &["RUNNING", "STOPPED"],
        &["COMPLETED", "COMPLETING"],
        &["CANCELLED", "COMPLETING"],
        &["PENDING", "COMPLETING"],
        &["RUNNING", "RESIZING"],
        &["SOMETHING_NEW"],
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        fake.job(1, state, NODE);
        assert_eq!(fake.waits().waiting_for[0].what, "job 1", "{state:?}");
    }
    for state in [
        &["COMPLETED"][..],
        &["CANCELLED"],
        &["NODE_FAIL"],
        &["PENDING"],
        &["FAILED", "SOMETHING_NEW"],
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        fake.job(1, state, NODE);
        assert_eq!(fake.run_until_stable(), Outcome::Done, "{state:?}");
    }
}

#[test]
fn trap_03_a_node_that_does_not_respond_proves_nothing() {
    assert!(!is_drained(&["DOWN", "DRAIN", "NOT_RESPONDING"]));
    assert!(!is_drained(&["IDLE", "DRAIN", "NOT_RESPONDING"]));
    assert!(is_drained(&["DOWN", "DRAIN"]));
}

#[test]
fn trap_04_resume_is_never_sent_without_a_check() {
    // No longer drained: nothing is sent.
    let fake = Fake::busy();
    fake.node(NODE, &["MIXED"], OURS);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    // Someone was quicker: the next step sees the result.
    let fake = Fake::new();
    fake.run_until_stable();
    fake.fault("POST", true, || {
        Ok(error(500, 2028, "Invalid node state specified"))
    });
    fake.fails(Phase::OnCancel, false, "2028");
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
}

#[test]
fn trap_05_a_reason_outlives_its_drain_and_grows() {
    // Both the flag and the beginning of the reason count.
    let fake = Fake::new();
    fake.node(NODE, &["IDLE"], &OURS.replace("maintenance", "last-week"));
    assert!(matches!(fake.step(Phase::BeforeDrain), Outcome::Pending(_)));
    assert_eq!(
        fake.state(NODE),
        ["IDLE", "DRAIN"],
        "the reason alone does not mean a drain"
    );

    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], &format!("{OURS} : Not responding"));
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert!(
        fake.requests().iter().all(|line| line.starts_with("GET ")),
        "it is ours as it is"
    );
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);

    // A foreign reason on a node in service is a leftover and does not count.
    let fake = Fake::new();
    fake.node(NODE, &["IDLE"], "bad disk");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(fake.reason(NODE), OURS);
}

#[test]
fn trap_06_a_drain_replaces_the_reason_so_a_foreign_one_is_not_drained_again() {
    let fake = Fake::busy();
    fake.node(NODE, &["MIXED", "DRAIN"], "bad disk");
    fake.waits();
    assert_eq!(fake.reason(NODE), "bad disk");
    fake.no_jobs();
    fake.node(NODE, &["IDLE", "DRAIN"], "bad disk");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    for phase in [Phase::OnCancel, Phase::BeforeUncordon, Phase::AfterUncordon] {
        assert_eq!(fake.step(phase), Outcome::Done);
    }
    assert_eq!(
        (fake.state(NODE).len(), fake.reason(NODE).as_str()),
        (2, "bad disk")
    );
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    // The call that undrains replaces our reason, so that a later drain without a reason does not inherit it.
    let fake = Fake::new();
    fake.run_until_stable();
    fake.step(Phase::OnCancel);
    let undrain = "POST node/node-1 UNDRAIN Not responding";
    assert!(fake.requests().contains(&undrain.to_owned()));
    fake.node(NODE, &["IDLE", "DRAIN"], &fake.reason(NODE));
    for phase in [Phase::OnCancel, Phase::BeforeUncordon, Phase::AfterUncordon] {
        assert_eq!(fake.step(phase), Outcome::Done);
    }
    assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"]);
}

#[test]
fn trap_07_a_lost_response_means_check_then_repeat() {
    for answer in [
        || Ok(error(504, 5004, "Socket timed out on send/recv operation")),
        || Err(http::Error::Timeout("20 s".to_owned())),
        || Err(http::Error::Broken("closed".to_owned())),
    ] {
        for has_effect in [true, false] {
            let fake = Fake::new();
            fake.fault("POST", has_effect, answer);
            fake.fails(Phase::BeforeDrain, false, "retrying");
            fake.requests();
            assert_eq!(fake.run_until_stable(), Outcome::Done);
            let posts = fake
                .requests()
                .iter()
                .filter(|line| line.starts_with("POST"))
                .count();
            assert_eq!(posts, usize::from(!has_effect), "{has_effect}");
        }
    }
}

#[test]
fn trap_08_slow_refusals_are_awaited() {
    let fake = Fake::busy();
    fake.waits();
    assert!(
        fake.timeouts()
            .iter()
            .all(|limit| limit.is_some_and(|limit| limit >= 15_000))
    );
    fake.fault("GET nodes/", false, || {
        Ok(error(
            502,
            1800,
            "Unable to contact slurm controller (connect failure)",
        ))
    });
    fake.requests();
    fake.fails(Phase::BeforeDrain, false, "slurmrestd cannot reach slurmctld");
    assert_eq!(fake.requests().len(), 1, "one slow request a step");
    fake.waits();
}

#[test]
fn trap_09_ping_is_not_trusted() {
    let fake = Fake::busy();
    fake.waits();
    fake.step(Phase::OnCancel);
    assert!(!fake.requests().iter().any(|line| line.contains("ping")));
}

#[test]
fn trap_10_a_token_without_permission_cancels_no_job() {
    let due = |fake: &Fake| {
        fake.host.config("ladder", "10m signal USR1, 5m cancel");
        fake.host.config("ladder-too-long", "scale");
        fake.host.deadline_in(Duration::from_secs(60));
    };
    // A repeated drain proves the permission first; without it nothing is cancelled.
    let fake = Fake::busy();
    fake.waits();
    due(&fake);
    fake.requests();
    fake.fault("POST", false, || Ok(error(500, 2010, "Invalid user id")));
    assert!(fake.waits().progress.contains("only Slurm's operators may"));
    assert!(!fake.requests().iter().any(|line| line.starts_with("DELETE")));
    // On a node that someone else has drained, nothing proves it.
    let fake = Fake::busy();
    fake.node(NODE, &["MIXED", "DRAIN"], "bad disk");
    due(&fake);
    let waits = fake.waits();
    assert!(
        waits
            .progress
            .starts_with("the ladder is not climbed because someone else has drained"),
        "{}",
        waits.progress
    );
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    // Without permission the drain fails before any change.
    let fake = Fake::busy();
    due(&fake);
    fake.fault("POST", false, || Ok(error(500, 2010, "Invalid user id")));
    fake.fails(Phase::BeforeCordon, true, "only Slurm's operators may");
}

#[test]
fn trap_11_a_200_does_not_prove_success() {
    let failure =
        json!({"errors": [{"description": "Failure to query node", "error_number": 0, "error": "No error"}]});
    for begins in ["GET nodes/", "GET jobs/", "POST"] {
        let fake = Fake::new();
        fake.serves(&[44]);
        let body = failure.clone();
        fake.fault(begins, false, move || Ok(ok(body)));
        fake.step(Phase::BeforeDrain);
        let outcome = fake.step(Phase::BeforeDrain);
        assert_ne!(outcome, Outcome::Done, "{begins}");
        assert_eq!(fake.run_until_stable(), Outcome::Done);
    }
}

#[test]
fn trap_12_every_body_is_plain_json_and_no_other_has_a_type() {
    // `Fake` checks each request; this sends all kinds of them.
    let fake = Fake::busy();
    fake.host
        .config("ladder", "10m signal USR1, 9m requeue, 8m cancel, 7m down");
    fake.host.config("ladder-too-long", "scale");
    fake.host.deadline_in(Duration::from_secs(60));
    fake.host.advance(Duration::from_secs(59));
    for _ in 0..8 {
        fake.step(Phase::BeforeDrain);
    }
    fake.step(Phase::OnCancel);
    let requests = fake.requests();
    for begins in [
        "GET nodes/",
        "GET jobs/",
        "GET job/",
        "DELETE",
        "POST node/node-1 DRAIN",
        "POST node/node-1 DOWN",
        "POST node/node-1 RESUME",
    ] {
        assert!(
            requests.iter().any(|line| line.starts_with(begins)),
            "{begins}: {requests:#?}"
        );
    }
}

#[test]
fn trap_13_no_request_uses_update_time() {
    let fake = Fake::busy();
    fake.waits();
    fake.waits();
    assert!(!fake.requests().iter().any(|line| line.contains("update_time")));
    fake.fault("GET nodes/", false, || Ok(http::Response::new(304, "")));
    fake.fails(Phase::BeforeDrain, false, "304");
}

#[test]
fn trap_14_a_job_that_waits_for_the_node_is_not_awaited() {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    fake.raw_job(json!({"job_id": 1, "job_state": ["PENDING"], "nodes": "", "required_nodes": NODE, "state_reason": "ReqNodeNotAvail"}));
    fake.raw_job(json!({"job_id": 2, "job_state": ["PENDING"], "nodes": "", "state_reason": "BeginTime"}));
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn trap_15_a_freshly_started_controller_knows_nothing_yet() {
    assert!(!is_drained(&["UNKNOWN", "DRAIN"]));
    let fake = Fake::busy();
    fake.waits();
    fake.node(NODE, &["UNKNOWN", "DRAIN"], OURS);
    fake.no_jobs();
    fake.requests();
    assert_eq!(fake.waits().waiting_for[0].detail, "unknown state: unknown+drain");
    // The drain has survived: nothing is sent again.
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
}
