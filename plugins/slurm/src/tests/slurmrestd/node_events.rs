//! Kubernetes Events of the node: one for each change, after any number of steps.

use std::time::Duration;

use scupper_sdk::http::Error;
use scupper_sdk::{Outcome, Phase};

use super::fake::{Fake, NODE, OURS};

const DRAINING: &str = "Normal SlurmNodeDraining of node-1: Slurm gives no more jobs to node-1: ";

fn draining() -> String {
    format!("{DRAINING}{OURS}")
}

#[test]
fn draining_and_undraining_emit_one_event_each() {
    let fake = Fake::busy();
    assert!(matches!(fake.step(Phase::BeforeCordon), Outcome::Pending(_)));
    assert_eq!(fake.step(Phase::BeforeCordon), Outcome::Done);
    for _ in 0..3 {
        fake.waits();
    }
    assert_eq!(fake.host.events(), [draining()]);
    for _ in 0..2 {
        assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    }
    assert_eq!(
        fake.host.events(),
        [
            draining(),
            "Normal SlurmNodeUndrained of node-1: Slurm gives jobs to node-1 again: maintenance".to_owned()
        ]
    );
}

#[test]
fn draining_is_reported_even_if_the_response_was_lost() {
    let fake = Fake::busy();
    fake.fault("POST node/", true, || {
        Err(Error::Timeout("no answer within 20 s".to_owned()))
    });
    assert!(matches!(fake.step(Phase::BeforeCordon), Outcome::Failed(_)));
    assert_eq!(fake.reason(NODE), OURS);
    assert_eq!(fake.host.events(), [] as [String; 0]);
    assert_eq!(fake.step(Phase::BeforeCordon), Outcome::Done);
    fake.waits();
    assert_eq!(fake.host.events(), [draining()]);
}

#[test]
fn a_foreign_drain_emits_one_event() {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], "bad disk");
    assert_eq!(fake.step(Phase::BeforeCordon), Outcome::Done);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    let found = "Normal SlurmNodeFoundDrained of node-1: node-1 was already drained in Slurm, reason given: bad disk; \
                 drain and uncordon keep it drained";
    assert_eq!(fake.host.events(), [found]);
}

#[test]
fn each_rung_emits_one_event() {
    let fake = Fake::busy();
    fake.host
        .config("ladder", "15m signal USR1, 10m requeue, 5m cancel, 2m down");
    fake.host.deadline_in(Duration::from_secs(30 * 60));
    fake.waits();
    for minutes in [15, 5, 5, 3] {
        fake.host.advance(Duration::from_secs(minutes * 60));
        for _ in 0..3 {
            // A real job would have ended by now.
            fake.job(4711, &["RUNNING"], NODE);
            fake.run_until_stable();
        }
    }
    let reported: Vec<String> = fake.host.events().into_iter().skip(1).collect();
    let rung = |reason: &str, said: &str| {
        format!("Warning {reason} of node-1: near the deadline of maintenance: {said} (node-1)")
    };
    assert_eq!(
        reported,
        [
            rung("SlurmJobsSignalled", "SIGUSR1 sent to 1 job"),
            rung("SlurmRungMissed", "this Slurm cannot requeue a job"),
            rung("SlurmJobsCancelled", "1 job cancelled"),
            rung("SlurmNodeDown", "the node was set down"),
        ]
    );
}

#[test]
fn a_rung_without_jobs_emits_no_event() {
    let fake = Fake::new();
    fake.node(NODE, &["MIXED"], "");
    fake.host.config("ladder", "5m cancel");
    fake.host.config("ladder-too-long", "scale");
    fake.host.deadline_in(Duration::from_secs(60));
    // Slurm reports the node in use, but lists no job.
    assert!(fake.waits().progress.starts_with("no job to cancel"));
    assert_eq!(fake.host.events(), [draining()]);
}

#[test]
fn a_drain_continues_if_no_event_can_be_emitted() {
    let fake = Fake::busy();
    fake.host.config("cluster", "uid-of-cluster");
    fake.host.outage(Some("the API server does not answer"));
    fake.waits();
    assert_eq!(fake.host.events(), [] as [String; 0]);
    assert_eq!(fake.reason(NODE), OURS);
}

#[test]
fn drain_and_uncordon_each_report_once_that_the_node_stays_out_of_service() {
    for (state, reason, words) in [
        (
            &["IDLE", "DRAIN"][..],
            "bad disk",
            "DRAIN in Slurm, reason given: bad disk",
        ),
        (&["IDLE", "DRAIN"], "", "DRAIN in Slurm, without a reason"),
        (&["DOWN"], "ticket 7", "DOWN in Slurm, reason given: ticket 7"),
        (
            &["DOWN", "DRAIN"],
            "ticket 7",
            "DRAIN+DOWN in Slurm, reason given: ticket 7",
        ),
    ] {
        let fake = Fake::new();
        fake.node(NODE, state, reason);
        while fake.step(Phase::BeforeCordon) != Outcome::Done {}
        fake.host.cordon(true);
        fake.run_until_stable();
        fake.host.cordon(false);
        fake.host.drain_named("maintenance-complete");
        fake.step(Phase::BeforeUncordon);
        fake.host.uncordon();
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
        let stays = format!("node-1 stays {words}; Scupper did not do this");
        let events = fake.host.events();
        let count = |words: &str| events.iter().filter(|event| event.contains(words)).count();
        assert_eq!(count(&stays), 1, "{events:?}");
        let found = usize::from(state.contains(&"DRAIN"));
        assert_eq!(count("was already drained in Slurm, "), found, "{events:?}");
    }
}

#[test]
fn a_node_back_in_service_is_not_reported() {
    for state in [&["IDLE", "DRAIN"][..], &["IDLE"]] {
        let fake = Fake::new();
        fake.node(NODE, state, OURS);
        fake.node("node-2", &["DOWN"], "another node");
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
        let events = fake.host.events();
        assert!(
            !events.iter().any(|event| event.contains("StaysOut")),
            "{events:?}"
        );
    }
}
