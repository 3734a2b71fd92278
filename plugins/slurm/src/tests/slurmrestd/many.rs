//! Clusters with so many jobs that the list of all jobs exceeds the limit of a response.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase, http::Error};

use super::climbing::part;
use super::fake::{Fake, NODE, OURS};

/// A drained node in a cluster with many queued jobs, and these jobs on other nodes.
fn crowd(elsewhere: std::ops::Range<u64>) -> Fake {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    fake.waiting(50_000);
    for id in elsewhere {
        fake.job(id, &["RUNNING"], "node-2");
    }
    fake
}

/// The number of jobs fetched by number since the last call.
fn asked(fake: &Fake) -> usize {
    let requests = fake.requests();
    assert!(
        !requests.iter().any(|line| line.starts_with("GET jobs/?")),
        "the long list"
    );
    requests
        .iter()
        .filter(|line| line.starts_with("GET job/"))
        .count()
}

#[test]
fn an_idle_node_is_drained_without_the_long_list_of_jobs() {
    let fake = crowd(0..0);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(
        fake.requests(),
        [
            "GET nodes/",
            "GET nodes/",
            "GET nodes/",
            "GET nodes/",
            "GET jobs/state/"
        ]
    );
}

#[test]
fn each_running_job_of_the_cluster_is_fetched_once() {
    let fake = crowd(1000..1100);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    fake.job(1050, &["RUNNING"], NODE);
    let Outcome::Pending(first) = fake.step(Phase::BeforeDrain) else {
        panic!("it has a job")
    };
    assert_eq!(asked(&fake), 40);
    assert_eq!(
        (first.progress.as_str(), first.again_after),
        (
            "no job is listed on node-1, but it is not known to be free; 60 other jobs of the cluster still to be checked",
            250
        )
    );
    let waits = fake.waits();
    assert_eq!(
        waits.progress,
        "1 job on node-1, at most until 2027-01-15 09:00 UTC"
    );
    assert_eq!(asked(&fake), 60 + 1, "and the one that was found, again");
    // From now on only the state of the node's job, and the job itself.
    fake.job(2000, &["RUNNING"], "node-2");
    for _ in 0..2 {
        fake.waits();
        assert_eq!(
            fake.requests(),
            [
                "GET nodes/",
                "GET jobs/state/?job_id=1050",
                "GET job/1050?flags=ALL"
            ]
        );
    }
    fake.job(1050, &["COMPLETED"], NODE);
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(asked(&fake), 1, "the one that has begun since");
}

#[test]
fn a_suspended_job_on_an_idle_node_is_found_among_many() {
    let fake = crowd(1000..1200);
    fake.job(1199, &["SUSPENDED"], NODE);
    let waits = fake.waits();
    assert_eq!(waits.waiting_for[0].detail, "train of alice: suspended");
    fake.job(1199, &["PENDING"], "");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn a_requeued_job_that_runs_elsewhere_is_forgotten() {
    let fake = crowd(0..0);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    fake.job(7, &["RUNNING"], NODE);
    fake.waits();
    fake.job(7, &["RUNNING"], "node-2");
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn after_a_resume_the_jobs_are_searched_again() {
    let fake = crowd(0..0);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    fake.job(7, &["PENDING"], "");
    fake.job(9, &["RUNNING"], NODE);
    fake.waits();
    // Resumed, given a job older than the last checked one, and drained again by someone.
    fake.node(NODE, &["MIXED"], OURS);
    fake.job(7, &["SUSPENDED"], NODE);
    fake.job(9, &["COMPLETED"], NODE);
    fake.waits();
    fake.node(NODE, &["IDLE", "DRAIN"], "theirs");
    assert_eq!(fake.waits().waiting_for[0].what, "job 7");
}

#[test]
fn a_too_long_list_names_the_limit_and_proves_nothing() {
    for (begins, words) in [
        (
            "GET nodes/",
            "can only list all nodes of the cluster, some 3 KB for each",
        ),
        (
            "GET jobs/state/",
            "can only list the states of all jobs of the cluster, some 90 bytes for each",
        ),
    ] {
        let fake = crowd(1000..1001);
        fake.serves(&[44]);
        fake.fault(begins, false, || {
            Err(Error::TooLarge("limits: {response: 16Mi}".to_owned()))
        });
        fake.fails(Phase::BeforeDrain, false, words);
        assert_eq!(fake.run_until_stable(), Outcome::Done, "{begins}");
    }
    // A list of few jobs that is too long: they are fetched one by one.
    let fake = Fake::busy();
    fake.step(Phase::BeforeCordon);
    fake.fault("GET jobs/?flags", false, || Err(Error::TooLarge(String::new())));
    assert_eq!(fake.waits().waiting_for[0].what, "job 4711");
}

#[test]
fn more_jobs_than_the_state_holds_are_awaited_in_turn() {
    let fake = crowd(0..0);
    fake.node(NODE, &["ALLOCATED", "DRAIN"], OURS);
    let jobs: Vec<u64> = (0..400).map(|job| 1_000_000 + 1000 * job).collect();
    for id in &jobs {
        fake.job(*id, &["RUNNING"], NODE);
    }
    let mut steps = 0;
    let progress = loop {
        let Outcome::Pending(waits) = fake.step(Phase::BeforeDrain) else {
            panic!("it has jobs")
        };
        assert!(waits.state.len() <= 1024, "{} bytes", waits.state.len());
        assert!(fake.requests().len() <= 50, "requests of a step");
        steps += 1;
        assert!(steps < 100, "{}", waits.progress);
        if waits.again_after >= 1_000 {
            break waits.progress;
        }
    };
    assert!(
        progress.contains("to be checked when one of these has ended"),
        "{progress}"
    );
    for id in &jobs {
        fake.job(*id, &["COMPLETED"], NODE);
    }
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    fake.job(2_000_000, &["SUSPENDED"], NODE);
    assert_eq!(
        fake.waits().waiting_for.len(),
        1,
        "the last one was not forgotten"
    );
    fake.no_jobs();
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn a_rung_is_climbed_for_all_jobs_of_the_node_among_many_others() {
    let fake = crowd(1000..1100);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    fake.host.config("ladder", "5m signal USR1, 1m cancel");
    fake.host.deadline_in(Duration::from_secs(360));
    fake.job(1000, &["RUNNING"], NODE);
    fake.job(1099, &["RUNNING"], NODE);
    fake.host.advance(Duration::from_secs(60));
    let mut deletes = Vec::new();
    let progress = loop {
        let Outcome::Pending(waits) = fake.step(Phase::BeforeDrain) else {
            panic!("it has jobs")
        };
        deletes.extend(
            fake.requests()
                .into_iter()
                .filter(|line| line.starts_with("DELETE")),
        );
        if waits.progress.starts_with("SIGUSR1") {
            break waits.progress;
        }
        assert_eq!(waits.again_after, 250, "{}", waits.progress);
    };
    assert!(
        progress.starts_with("SIGUSR1 sent to 2 jobs; 2 jobs on node-1"),
        "{progress}"
    );
    assert_eq!(
        deletes,
        ["DELETE job/1000?signal=SIGUSR1", "DELETE job/1099?signal=SIGUSR1"]
    );
}

/// Takes steps until the rung is climbed; returns what was said, and the requests that set the node down.
fn down(fake: &Fake) -> (String, Vec<String>) {
    fake.requests();
    for _ in 0..50 {
        let Outcome::Pending(waits) = fake.step(Phase::BeforeDrain) else {
            panic!("it has jobs")
        };
        if waits.progress.starts_with("the node was ") {
            let mut downs = fake.requests();
            downs.retain(|line| line.contains(" DOWN "));
            return (waits.progress, downs);
        }
        assert_eq!(waits.again_after, 250, "{}", waits.progress);
    }
    panic!("not climbed: {:#?}", fake.requests())
}

#[test]
fn a_node_is_not_set_down_beside_a_heterogeneous_job_that_is_found_late() {
    // It is among many jobs of the cluster, and due in the first step.
    let fake = crowd(1000..1098);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    fake.host.config("ladder", "5m down");
    fake.host.deadline_in(Duration::from_secs(300));
    part(&fake, 1098, 0, NODE);
    part(&fake, 1098, 1, "node-2");
    let (said, downs) = down(&fake);
    assert!(
        said.starts_with("the node was not set down; job 1098+0"),
        "{said}"
    );
    assert_eq!(downs, [""; 0]);
    // It is among many jobs of the node, which are only partly fetched again in each step.
    for (is_heterogeneous, words, requests) in [
        (true, "the node was not set down; job 1098+0", 0),
        (false, "the node was set down", 1),
    ] {
        let fake = crowd(0..0);
        fake.node(NODE, &["MIXED", "DRAIN"], OURS);
        fake.host.config("ladder", "5m down");
        fake.host.deadline_in(Duration::from_secs(360));
        for id in 1000..1050 {
            fake.job(id, &["RUNNING"], NODE);
        }
        if is_heterogeneous {
            part(&fake, 1098, 0, NODE);
        }
        fake.waits();
        fake.host.advance(Duration::from_secs(60));
        let (said, downs) = down(&fake);
        assert!(said.starts_with(words), "{said}");
        assert_eq!(downs.len(), requests, "{downs:?}");
    }
}

/// The next response for this job is too long, because of its array.
fn too_many_tasks(fake: &Fake, request: &'static str) {
    fake.fault(request, false, || Err(Error::TooLarge(String::new())));
}

#[test]
fn a_long_array_elsewhere_does_not_hold_a_free_node() {
    let fake = crowd(1000..1001);
    too_many_tasks(&fake, "GET job/1000?");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    // A suspended job may be anywhere, because its node is free.
    let fake = crowd(1000..1000);
    fake.job(1000, &["SUSPENDED"], "node-2");
    for _ in 0..2 {
        too_many_tasks(&fake, "GET job/1000?");
        let waits = fake.waits();
        assert_eq!(waits.waiting_for[0].what, "job 1000");
        assert_eq!(
            waits.waiting_for[0].detail,
            "suspended, and Slurm does not say on which nodes"
        );
    }
    assert_eq!(fake.run_until_stable(), Outcome::Done, "it comes alone now");
}

#[test]
fn a_long_array_is_fetched_once_while_the_node_is_in_use_and_no_rung_touches_it() {
    let fake = crowd(1000..1001);
    fake.node(NODE, &["MIXED", "DRAIN"], OURS);
    fake.job(7, &["RUNNING"], NODE);
    fake.host.config("ladder", "5m signal USR1, 1m cancel");
    fake.host.deadline_in(Duration::from_secs(360));
    too_many_tasks(&fake, "GET job/1000?");
    assert_eq!(fake.waits().waiting_for[0].what, "job 7");
    fake.requests();
    fake.host.advance(Duration::from_secs(301));
    fake.waits();
    fake.waits();
    let requests = fake.requests();
    let deletes: Vec<_> = requests
        .iter()
        .filter(|line| line.starts_with("DELETE"))
        .collect();
    assert_eq!(deletes, ["DELETE job/7?signal=SIGUSR1", "DELETE job/7"]);
    assert!(
        !requests.iter().any(|line| line.starts_with("GET job/1000")),
        "{requests:?}"
    );
    fake.job(7, &["CANCELLED"], NODE);
    let waits = fake.waits();
    assert_eq!(
        waits.waiting_for[0].what, "job 1000",
        "as the node is still in use"
    );
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    too_many_tasks(&fake, "GET job/1000?");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}
