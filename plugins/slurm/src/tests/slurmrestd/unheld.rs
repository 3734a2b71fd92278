//! `hold: slurm-pods` on a node without a Slurm pod that leaves.

use scupper_sdk::testing::pod;
use scupper_sdk::{Outcome, Phase, Severity};

use super::fake::{Fake, NODE, OURS};
use crate::Slurm;
use crate::tests::slurmd;

/// The Slurm pod has other labels, or stays.
fn unheld() -> Fake {
    let fake = Fake::busy();
    fake.host.config("hold", "slurm-pods");
    fake.host.pods([
        pod("slurm/slurmd-0").with_label("app", "slurmd"),
        slurmd("worker-0", &[]).of_daemon_set(),
    ]);
    fake
}

#[test]
fn jobs_without_a_pod_that_waits_for_them_refuse_the_drain_before_any_change() {
    let fake = unheld();
    let words = "no pod with the labels of `label` leaves node-1";
    fake.fails(Phase::BeforeCordon, true, words);
    fake.host.cordon(false);
    fake.fails(Phase::BeforeDrain, true, words);
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    // A suspended job does not show in the node's state.
    fake.no_jobs();
    fake.node(NODE, &["IDLE"], "");
    fake.job(1, &["SUSPENDED"], NODE);
    fake.fails(Phase::BeforeDrain, true, words);
}

#[test]
fn a_job_that_begins_in_that_moment_is_awaited() {
    let fake = unheld();
    fake.no_jobs();
    fake.node(NODE, &["IDLE"], "");
    while fake.step(Phase::BeforeCordon) != Outcome::Done {}
    fake.host.cordon(true);
    fake.job(1, &["RUNNING"], NODE);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    assert_eq!(fake.waits().waiting_for[0].what, "job 1");
}

/// The same, without jobs on the node, and with these on other nodes of a cluster with many jobs. Another tool has cordoned it.
fn unheld_among_many(elsewhere: std::ops::Range<u64>) -> Fake {
    let fake = unheld();
    fake.no_jobs();
    fake.node(NODE, &["IDLE"], "");
    fake.waiting(1000);
    for id in elsewhere {
        fake.job(id, &["RUNNING"], "node-2");
    }
    fake.host.cordon(false);
    fake
}

#[test]
fn among_many_jobs_an_older_one_that_begins_in_that_moment_is_awaited() {
    let fake = unheld_among_many(1000..1001);
    // The drain is requested; meanwhile a job begins that has waited for long.
    assert!(matches!(fake.step(Phase::BeforeDrain), Outcome::Pending(_)));
    fake.job(7, &["SUSPENDED"], NODE);
    assert_eq!(fake.waits().waiting_for[0].what, "job 7");
}

#[test]
fn a_first_step_searches_the_jobs_of_the_cluster_once() {
    let fake = unheld_among_many(1000..1200);
    fake.node(NODE, &["IDLE", "DRAIN"], "bad disk");
    for step in 1..=5 {
        let outcome = fake.step(Phase::BeforeDrain);
        // A step has 64.
        assert!(fake.requests().len() <= 50, "step {step}");
        assert_eq!(outcome == Outcome::Done, step == 5, "step {step}: {outcome:?}");
    }
}

#[test]
fn the_whole_node_is_held_if_configured() {
    let fake = unheld();
    fake.host.config("no-slurm-pods", "hold");
    while fake.step(Phase::BeforeCordon) != Outcome::Done {}
    assert_eq!(fake.waits().waiting_for[0].what, "job 4711");
    fake.no_jobs();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn the_check_warns() {
    let fake = unheld();
    fake.host
        .pods([pod("slurm/slurmd-0").with_label("app", "slurmd")]);
    let hold = |fake: &Fake| {
        let findings = fake.host.check::<Slurm>();
        findings.into_iter().find(|found| found.subject == "hold")
    };
    let found = hold(&fake).unwrap();
    assert!(
        found.severity == Severity::Warning && found.message.contains("refused while it has jobs"),
        "{found:?}"
    );
    fake.host.pods([slurmd("worker-0", &[])]);
    assert_eq!(hold(&fake), None);
}
