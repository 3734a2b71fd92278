//! Draining the node, waiting, and the messages meanwhile.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase, Subject, http::Response};

use super::fake::{Fake, NODE, OURS, URL};
use crate::Slurm;
use crate::tests::slurmd;

#[test]
fn a_drain_from_start_to_end() {
    let fake = Fake::busy();
    assert!(matches!(fake.step(Phase::BeforeCordon), Outcome::Pending(_)));
    assert_eq!(fake.step(Phase::BeforeCordon), Outcome::Done);
    let before_cordon = fake.requests();
    assert_eq!(
        before_cordon,
        [
            "GET nodes/",
            "GET nodes/",
            "GET nodes/",
            "GET nodes/",
            format!("POST node/node-1 DRAIN {OURS}").as_str(),
            "GET nodes/"
        ]
    );
    let waits = fake.waits();
    assert_eq!(
        waits.progress,
        "1 job on node-1, at most until 2027-01-15 09:00 UTC"
    );
    assert_eq!((waits.again_after, waits.waiting_for.len()), (5_000, 1));
    let job = &waits.waiting_for[0];
    assert_eq!(job.what, "job 4711");
    assert_eq!(
        job.detail,
        "train of alice: running, at most until 2027-01-15 09:00 UTC"
    );
    assert_eq!(job.since, Some(fake.host.now()));

    fake.requests();
    fake.waits();
    assert_eq!(
        fake.requests(),
        ["GET nodes/", "GET jobs/state/", "GET jobs/?flags=ALL"],
        "three requests a poll"
    );

    fake.job(4711, &["COMPLETED", "COMPLETING"], NODE);
    fake.node(NODE, &["IDLE", "DRAIN", "COMPLETING"], OURS);
    assert!(
        matches!(fake.run_until_stable(), Outcome::Pending(_)),
        "its epilog runs"
    );
    fake.job(4711, &["COMPLETED"], NODE);
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn several_jobs_have_an_earliest_and_a_latest_end() {
    let fake = Fake::busy();
    fake.job(4712, &["RUNNING"], "node-[1-9]");
    fake.host.advance(Duration::from_secs(1800));
    fake.job(4713, &["RUNNING"], NODE);
    fake.job(4714, &["RUNNING"], "node-2");
    let waits = fake.waits();
    assert_eq!(
        waits.progress,
        "3 jobs on node-1, the first at most until 2027-01-15 09:00 UTC, the last until 2027-01-15 09:30 UTC"
    );
    fake.job(4712, &["SUSPENDED"], "node-[1-9]");
    assert_eq!(fake.waits().progress, "3 jobs on node-1");
}

#[test]
fn a_new_process_continues_the_drain() {
    let fake = Fake::busy();
    fake.waits();
    let named = fake.host.now();
    // The same drain in another process: a hook without saved state starts again.
    fake.host.drain_named("maintenance");
    fake.requests();
    fake.waits();
    let again = fake.requests();
    assert!(again.iter().all(|line| line.starts_with("GET ")), "{again:?}");
    assert_eq!(fake.host.now(), named);
}

#[test]
fn a_leftover_drain_without_a_cordon_is_replaced() {
    let fake = Fake::new();
    fake.node(
        NODE,
        &["IDLE", "DRAIN"],
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-last-week: last-week",
    );
    assert!(matches!(fake.step(Phase::BeforeCordon), Outcome::Pending(_)));
    assert_eq!(fake.step(Phase::BeforeCordon), Outcome::Done);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(fake.reason(NODE), OURS);
}

#[test]
fn a_node_resumed_meanwhile_is_not_drained_again() {
    let fake = Fake::busy();
    fake.waits();
    fake.node(NODE, &["MIXED"], OURS);
    fake.requests();
    let waits = fake.waits();
    assert!(
        waits.progress.starts_with("an operator resumed node-1 in Slurm"),
        "{}",
        waits.progress
    );
    fake.no_jobs();
    fake.node(NODE, &["IDLE"], OURS);
    assert!(
        matches!(fake.run_until_stable(), Outcome::Pending(_)),
        "it takes jobs"
    );
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    fake.node(NODE, &["IDLE", "DRAIN"], "theirs");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn a_node_that_starts_for_a_job_is_not_drained_yet() {
    for power in ["POWERING_UP", "POWERED_DOWN"] {
        let fake = Fake::busy();
        fake.node(NODE, &["ALLOCATED", power], "");
        assert!(fake.waits().progress.contains("would kill the jobs"));
        assert_eq!(fake.state(NODE), ["ALLOCATED", power]);
        fake.node(NODE, &["ALLOCATED"], "");
        fake.waits();
        assert_eq!(fake.state(NODE), ["ALLOCATED", "DRAIN"]);
    }
}

#[test]
fn a_node_that_is_down_is_drained_as_well_and_gets_its_reason_back() {
    let fake = Fake::new();
    fake.node(NODE, &["DOWN"], "bad disk");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    let reason = format!("{OURS}; was down: bad disk");
    assert_eq!(
        (fake.state(NODE), fake.reason(NODE)),
        (vec!["DOWN".to_owned(), "DRAIN".to_owned()], reason)
    );
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(
        (fake.state(NODE), fake.reason(NODE).as_str()),
        (vec!["DOWN".to_owned()], "bad disk")
    );
    // A failing node does not come back by itself.
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "FAIL"], "bad disk");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(
        (fake.state(NODE), fake.reason(NODE).as_str()),
        (vec!["IDLE".to_owned(), "FAIL".to_owned()], "bad disk")
    );
    // slurmctld's reason for a node that does not respond is not a decision of an operator.
    let fake = Fake::new();
    fake.node(NODE, &["DOWN", "NOT_RESPONDING"], "Not responding");
    assert_eq!(
        fake.waits().waiting_for[0].detail,
        "does not respond: its jobs may still run; if the machine is off, drain it with --node-is-off"
    );
    assert_eq!(fake.reason(NODE), format!("{OURS}; was down: Not responding"));
}

#[test]
fn a_node_that_does_not_respond_gets_the_reason_with_which_it_returns() {
    for reason in [
        format!("{OURS}; was down: Not responding"),
        format!("{OURS} : Not responding"),
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["DOWN", "DRAIN", "NOT_RESPONDING"], &reason);
        assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
        assert_eq!(
            (fake.state(NODE), fake.reason(NODE).as_str()),
            (
                vec!["DOWN".to_owned(), "NOT_RESPONDING".to_owned()],
                "Not responding"
            )
        );
    }
    // Not if someone had set it down, and not if it has come back meanwhile.
    for (state, after) in [
        (&["DOWN", "DRAIN"], "bad disk : Not responding"),
        (&["IDLE", "DRAIN"], "Not responding"),
    ] {
        let fake = Fake::new();
        let reason = format!("{OURS}; was down: bad disk : Not responding");
        fake.node(NODE, state, &reason);
        assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
        assert_eq!(fake.reason(NODE), after);
    }
}

#[test]
fn a_drain_that_the_controller_lost_is_repeated() {
    for (before, version) in [("", 41), ("", 42), ("bad disk", 42), ("", 45)] {
        let fake = Fake::busy();
        fake.serves(&[version]);
        fake.waits();
        // slurmctld died before it had saved the drain.
        fake.node(NODE, &["MIXED"], before);
        fake.restart();
        fake.waits();
        assert_eq!(
            (fake.state(NODE), fake.reason(NODE).as_str()),
            (vec!["MIXED".to_owned(), "DRAIN".to_owned()], OURS)
        );
        // A node resumed now is not drained again.
        fake.node(NODE, &["MIXED"], OURS);
        assert!(fake.waits().progress.starts_with("an operator resumed node-1"));
    }
}

#[test]
fn statistics_that_were_reset_are_no_restart_of_slurmctld() {
    for version in [42, 45] {
        let fake = Fake::busy();
        fake.serves(&[version]);
        fake.waits();
        fake.node(NODE, &["MIXED"], "");
        fake.reset_statistics();
        assert!(fake.waits().progress.starts_with("an operator resumed node-1"));
        assert_eq!(fake.state(NODE), ["MIXED"]);
    }
}

#[test]
fn a_job_that_starts_on_a_resumed_node_clears_the_reason_and_the_node_is_not_drained_again() {
    let fake = Fake::busy();
    fake.waits();
    fake.node(NODE, &["MIXED"], "");
    assert!(fake.waits().progress.starts_with("an operator resumed node-1"));
    assert_eq!(fake.state(NODE), ["MIXED"]);
}

#[test]
fn with_hold_slurm_pods_other_pods_are_evicted_meanwhile() {
    let fake = Fake::busy();
    fake.host.config("hold", "slurm-pods");
    fake.host.pods([slurmd("worker-0", &[])]);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert!(fake.state(NODE).contains(&"DRAIN".to_owned()));
    let wave = |name: &str| {
        fake.host
            .step::<Slurm>(Phase::BeforeWave, Subject::Wave(name.to_owned()))
    };
    assert_eq!(wave("all"), Outcome::Done);
    assert!(matches!(wave("slurm"), Outcome::Pending(_)));
    let uid = fake.host.pod("slurm/worker-0").unwrap().uid;
    let evict = || {
        fake.host
            .step::<Slurm>(Phase::BeforeEvict, Subject::Pod(uid.clone()))
    };
    assert!(matches!(evict(), Outcome::Pending(_)));
    fake.no_jobs();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert_eq!((wave("slurm"), evict()), (Outcome::Done, Outcome::Done));
}

#[test]
fn a_pod_with_its_own_slurm_node_waits_for_that_node() {
    let fake = Fake::new();
    fake.host.config("slurm-node", "pods");
    fake.host.config("hold", "slurm-pods");
    fake.host.pods([slurmd("worker-0", &[]), slurmd("worker-1", &[])]);
    fake.node("worker-0", &["IDLE", "DRAIN"], OURS);
    fake.node("worker-1", &["MIXED", "DRAIN"], OURS);
    fake.job(1, &["RUNNING"], "worker-1");
    let evict = |name: &str| {
        let uid = fake.host.pod(name).unwrap().uid;
        fake.host.step::<Slurm>(Phase::BeforeEvict, Subject::Pod(uid))
    };
    assert_eq!(evict("slurm/worker-0"), Outcome::Done);
    assert!(matches!(evict("slurm/worker-1"), Outcome::Pending(_)));
}

#[test]
fn the_version_is_detected_once() {
    let fake = Fake::busy();
    fake.waits();
    fake.requests();
    fake.waits();
    assert_eq!(fake.requests().len(), 3);
    // From now on another slurmrestd responds.
    fake.serves(&[42, 43, 44]);
    fake.waits();
    fake.serves(&[39, 40]);
    fake.waits();
    fake.requests();
    fake.waits();
    assert_eq!(
        fake.requests(),
        ["GET nodes/", "GET jobs/state/", "GET jobs/?flags=ALL"]
    );
    fake.serves(&[39]);
    fake.waits();
    fake.requests();
    fake.waits();
    assert_eq!(fake.requests(), ["GET nodes/", "GET jobs/state/", "GET jobs/"]);
}

#[test]
fn the_version_is_configurable() {
    let fake = Fake::busy();
    fake.host.config("api-version", "v0.0.41");
    fake.waits();
    assert_eq!(
        fake.requests()
            .iter()
            .filter(|line| *line == "GET nodes/")
            .count(),
        2
    );
    fake.serves(&[42, 43, 44]);
    fake.fails(Phase::BeforeCordon, true, "does not serve v0.0.41");
}

#[test]
fn a_server_that_is_not_slurmrestd_is_reported() {
    let fake = Fake::new();
    fake.serves(&[]);
    let words = format!("{URL} answers 404 for every version of slurmrestd's API from v0.0.39 to v0.0.45");
    fake.fails(Phase::BeforeCordon, true, &words);
    for (status, body, is_final) in [
        (200, "", true),
        (200, "OK", true),
        (200, "[]", true),
        (200, "null", true),
        (403, "Forbidden", true),
        (401, "<h1>Log in</h1>", true),
        (200, "{}", false),
        (200, r#"{"nodes":{}}"#, false),
        (400, "Unable to parse query.", false),
    ] {
        let fake = Fake::new();
        fake.serves(&[45]);
        fake.fault("GET nodes/", false, move || Ok(Response::new(status, body)));
        let words = if is_final {
            format!("{URL} is not slurmrestd: it answers {status}")
        } else {
            String::new()
        };
        fake.fails(Phase::BeforeCordon, is_final, &words);
        assert_eq!(fake.state(NODE), ["IDLE"], "{body}");
    }
}

#[test]
fn the_configured_reason_is_appended() {
    let fake = Fake::new();
    fake.host.config("reason", "ask\nops");
    fake.run_until_stable();
    assert_eq!(fake.reason(NODE), format!("{OURS}: ask ops"));
}
