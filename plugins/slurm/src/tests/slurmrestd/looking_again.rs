//! Slurm is looked at again before each wave and before the end.

use scupper_sdk::{
    Outcome, Pending, Phase, Subject,
    http::{Error, Response},
};
use serde_json::json;

use super::fake::{Fake, NODE, OURS, error, ok};
use crate::Slurm;

/// A drain after `before-drain`, with a node in this state.
fn drained(state: &[&str], reason: &str) -> Fake {
    let fake = Fake::new();
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    fake.host.cordon(true);
    fake.node(NODE, state, reason);
    fake.requests();
    fake
}

/// The later phases.
fn later(fake: &Fake) -> [Outcome; 3] {
    let step = |phase, subject| fake.host.step::<Slurm>(phase, subject);
    [
        step(Phase::BeforeWave, Subject::Wave("all".to_owned())),
        step(Phase::BeforeWave, Subject::Wave("slurm".to_owned())),
        step(Phase::AfterDrain, Subject::Node),
    ]
}

fn pending(outcome: Outcome) -> Pending {
    match outcome {
        Outcome::Pending(pending) => pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_that_stays_drained_costs_two_requests_a_look() {
    let fake = drained(&["IDLE", "DRAIN"], OURS);
    assert_eq!(later(&fake), [Outcome::Done, Outcome::Done, Outcome::Done]);
    let requests = fake.requests();
    assert!(
        requests.iter().all(|line| line.starts_with("GET ")),
        "{requests:?}"
    );
    let looks = requests.iter().filter(|line| *line == "GET jobs/state/").count();
    assert_eq!(looks, 3, "{requests:?}");
}

#[test]
fn a_node_that_an_operator_resumed_holds_every_later_phase_and_is_not_drained_again() {
    for reason in [OURS, ""] {
        let fake = drained(&["MIXED"], reason);
        fake.job(20, &["RUNNING"], NODE);
        for _ in 0..2 {
            for outcome in later(&fake) {
                let waits = pending(outcome);
                assert!(
                    waits.progress.starts_with("an operator resumed node-1 in Slurm"),
                    "{}",
                    waits.progress
                );
                assert_eq!(waits.waiting_for[0].what, NODE);
            }
        }
        assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
        let events = fake.host.events();
        let resumed = events.iter().filter(|event| event.contains("SlurmNodeResumed"));
        assert_eq!(resumed.count(), 3, "once in each hook: {events:?}");
        // The operator drains it again: the job is awaited.
        fake.node(NODE, &["MIXED", "DRAIN"], "maintenance, ops");
        for outcome in later(&fake) {
            assert_eq!(pending(outcome).waiting_for[0].what, "job 20");
        }
        fake.no_jobs();
        fake.node(NODE, &["IDLE", "DRAIN"], "maintenance, ops");
        assert_eq!(later(&fake), [Outcome::Done, Outcome::Done, Outcome::Done]);
    }
}

#[test]
fn each_resume_within_a_hook_is_reported_once() {
    let fake = Fake::busy();
    fake.waits();
    for resumes in 1..=2 {
        fake.node(NODE, &["MIXED"], "");
        for _ in 0..2 {
            assert!(fake.waits().progress.starts_with("an operator resumed"));
        }
        let events = fake.host.events();
        let resumed = events.iter().filter(|event| event.contains("SlurmNodeResumed"));
        assert_eq!(resumed.count(), resumes, "{events:?}");
        fake.node(NODE, &["MIXED", "DRAIN"], "maintenance, ops");
        assert_eq!(fake.waits().waiting_for[0].what, "job 4711");
    }
}

#[test]
fn a_slurmd_that_was_evicted_does_not_hold_the_end() {
    for state in [
        &["IDLE", "DRAIN", "NOT_RESPONDING"],
        &["DOWN", "DRAIN", "NOT_RESPONDING"],
    ] {
        let fake = drained(state, OURS);
        assert_eq!(later(&fake), [Outcome::Done, Outcome::Done, Outcome::Done]);
        fake.job(20, &["RUNNING"], NODE);
        assert_eq!(pending(later(&fake)[2].clone()).waiting_for[0].what, "job 20");
    }
}

#[test]
fn a_node_resumed_between_two_hooks_is_not_drained_again() {
    let fake = Fake::new();
    while fake.step(Phase::BeforeCordon) != Outcome::Done {}
    fake.host.cordon(true);
    fake.node(NODE, &["IDLE"], OURS);
    fake.requests();
    assert!(fake.waits().progress.starts_with("an operator resumed"));
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn with_hold_slurm_pods_the_waves_of_other_pods_do_not_wait() {
    let fake = drained(&["MIXED", "DRAIN"], OURS);
    fake.host.config("hold", "slurm-pods");
    fake.job(20, &["RUNNING"], NODE);
    let [all, slurm, end] = later(&fake);
    assert_eq!(all, Outcome::Done);
    for outcome in [slurm, end] {
        assert_eq!(pending(outcome).waiting_for[0].what, "job 20");
    }
}

#[test]
fn what_failed_for_good_at_first_is_retried_in_the_later_phases() {
    let answers: [fn() -> Result<Response, Error>; 4] = [
        || Ok(Response::new(503, "<h1>Service Unavailable</h1>")),
        || Ok(Response::new(302, "")),
        || Ok(error(511, 1007, "Protocol authentication error")),
        || {
            Ok(ok(
                json!({"nodes": [{"name": "node-2", "state": ["IDLE"], "reason": ""}]}),
            ))
        },
    ];
    for is_own_cordon in [true, false] {
        let fake = drained(&["IDLE", "DRAIN"], OURS);
        fake.host.cordon(is_own_cordon);
        let check = |outcome: Outcome| match outcome {
            Outcome::Failed(failure) => assert!(failure.retry_after.is_some(), "{failure:?}"),
            outcome => assert!(pending(outcome).progress.contains("waiting for a valid token")),
        };
        for answer in answers {
            for _ in 0..3 {
                fake.fault("GET nodes/", false, answer);
            }
            later(&fake).into_iter().for_each(check);
        }
        // An ingress without its backend.
        fake.serves(&[]);
        later(&fake).into_iter().for_each(check);
        fake.serves(&[42]);
        assert_eq!(later(&fake), [Outcome::Done, Outcome::Done, Outcome::Done]);
    }
}
