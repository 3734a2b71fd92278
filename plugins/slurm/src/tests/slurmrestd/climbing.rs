//! The deadline ladder.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase};
use serde_json::json;

use super::fake::{Fake, NODE, OURS, error, ok};

const MINUTE: Duration = Duration::from_secs(60);
const NOTHING: [String; 0] = [];

/// A drain with half an hour left, one job, and this ladder.
fn climber(ladder: &str) -> Fake {
    let fake = Fake::busy();
    fake.host.config("ladder", ladder);
    fake.host.deadline_in(30 * MINUTE);
    fake.waits();
    fake.requests();
    fake
}

/// The changes by the steps since the last call.
fn changes(fake: &Fake) -> Vec<String> {
    let requests = fake.requests();
    requests
        .into_iter()
        .filter(|line| !line.starts_with("GET nodes/") && !line.starts_with("GET jobs/"))
        .collect()
}

fn proof() -> String {
    format!("POST node/node-1 DRAIN {OURS}")
}

#[test]
fn without_a_ladder_jobs_are_not_touched() {
    let fake = climber("");
    fake.host.advance(29 * MINUTE);
    fake.waits();
    assert_eq!(changes(&fake), NOTHING);
}

#[test]
fn without_a_deadline_no_rung_is_due() {
    let fake = Fake::busy();
    fake.host.config("ladder", "15m cancel");
    fake.waits();
    fake.host.advance(1000 * MINUTE);
    fake.requests();
    fake.waits();
    assert_eq!(changes(&fake), NOTHING);
}

#[test]
fn each_rung_is_climbed_once_at_its_time() {
    let fake = climber("15m signal USR1, 5m signal TERM, 1m cancel");
    fake.host.advance(14 * MINUTE);
    fake.waits();
    assert_eq!(changes(&fake), NOTHING);
    fake.host.advance(MINUTE);
    assert!(
        fake.waits()
            .progress
            .starts_with("SIGUSR1 sent to 1 job; 1 job on node-1")
    );
    assert_eq!(
        changes(&fake),
        [proof(), "DELETE job/4711?signal=SIGUSR1".to_owned()]
    );
    fake.waits();
    assert_eq!(changes(&fake), NOTHING);
    fake.host.advance(10 * MINUTE);
    fake.waits();
    assert_eq!(
        changes(&fake),
        [proof(), "DELETE job/4711?signal=SIGTERM".to_owned()]
    );
    fake.host.advance(4 * MINUTE);
    fake.waits();
    assert_eq!(changes(&fake), [proof(), "DELETE job/4711".to_owned()]);
    // A cancelled job takes time to end.
    assert!(matches!(fake.run_until_stable(), Outcome::Pending(_)));
    assert_eq!(changes(&fake), NOTHING);
    fake.job(4711, &["CANCELLED"], NODE);
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    assert_eq!(fake.run_until_stable(), Outcome::Done);
}

#[test]
fn a_drain_shorter_than_the_ladder_is_refused_before_any_change() {
    let short = |keys: &[(&str, &str)]| {
        let fake = Fake::busy();
        fake.host
            .config("ladder", "15m signal USR1, 5m signal TERM, 1m cancel");
        for (key, value) in keys {
            fake.host.config(key, value);
        }
        fake.host.deadline_in(Duration::from_secs(30));
        fake
    };
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        let fake = short(&[]);
        fake.fails(
            phase,
            true,
            "the ladder begins 15m before the deadline, and this drain has 30s",
        );
        assert_eq!(fake.requests(), NOTHING);
    }
    // With `scale` the rungs keep their proportions.
    let fake = short(&[("ladder-too-long", "scale")]);
    let sent = |seconds: u64| {
        fake.host.advance(Duration::from_secs(seconds));
        fake.waits();
        fake.waits();
        changes(&fake)
            .into_iter()
            .rfind(|line| line.starts_with("DELETE"))
    };
    assert_eq!(sent(0).as_deref(), Some("DELETE job/4711?signal=SIGUSR1"));
    assert_eq!(sent(19), None);
    assert_eq!(sent(1).as_deref(), Some("DELETE job/4711?signal=SIGTERM"));
    assert_eq!(sent(7), None);
    assert_eq!(sent(1).as_deref(), Some("DELETE job/4711"));
}

#[test]
fn it_polls_in_time_for_the_next_rung() {
    let fake = climber("15m cancel");
    fake.host.advance(15 * MINUTE - Duration::from_secs(2));
    let Outcome::Pending(waits) = fake.step(Phase::BeforeDrain) else {
        panic!("it has a job")
    };
    assert_eq!(waits.again_after, 2_000);
}

#[test]
fn missed_rungs_follow_one_by_one() {
    let fake = climber("15m signal USR1, 5m cancel");
    fake.host.advance(29 * MINUTE);
    fake.waits();
    assert_eq!(
        changes(&fake),
        [proof(), "DELETE job/4711?signal=SIGUSR1".to_owned()]
    );
    fake.waits();
    assert_eq!(changes(&fake), [proof(), "DELETE job/4711".to_owned()]);
}

#[test]
fn many_jobs_are_signalled_in_several_steps() {
    let fake = climber("5m signal USR1");
    for id in 1..=20 {
        fake.job(id, &["RUNNING"], NODE);
    }
    fake.host.advance(25 * MINUTE);
    let mut reported = 0;
    loop {
        let Outcome::Pending(waits) = fake.step(Phase::BeforeDrain) else {
            panic!("they run")
        };
        let deletes = changes(&fake)
            .iter()
            .filter(|line| line.starts_with("DELETE"))
            .count();
        assert!(deletes <= 8, "{deletes}");
        reported += deletes;
        if waits.progress.starts_with("SIGUSR1 sent to 21 jobs") {
            break;
        }
        assert_eq!(waits.again_after, 250);
    }
    assert_eq!(reported, 21);
}

#[test]
fn a_job_that_cannot_be_signalled_is_skipped() {
    let fake = climber("5m signal USR1");
    fake.job(1, &["SUSPENDED"], NODE);
    fake.job(2, &["COMPLETED", "COMPLETING"], NODE);
    fake.job(3, &["RUNNING", "CONFIGURING"], NODE);
    fake.raw_job(json!({"job_state": ["RUNNING"], "nodes": NODE}));
    fake.host.advance(25 * MINUTE);
    fake.waits();
    assert_eq!(
        changes(&fake),
        [proof(), "DELETE job/4711?signal=SIGUSR1".to_owned()]
    );
}

#[test]
fn a_requeue_needs_a_slurm_that_supports_it() {
    let fake = climber("5m requeue");
    fake.host.advance(25 * MINUTE);
    assert!(
        fake.waits()
            .progress
            .starts_with("this Slurm cannot requeue a job; 1 job")
    );
    assert_eq!(changes(&fake), [proof(), "GET job/4711/requeue".to_owned()]);
    fake.waits();
    assert_eq!(changes(&fake), NOTHING, "reported once");

    let fake = climber("5m requeue");
    fake.serves(&[42, 43, 44, 45]);
    fake.job(4712, &["SUSPENDED"], NODE);
    fake.raw_job(json!({"job_id": 5, "job_state": ["RUNNING"], "nodes": NODE, "requeue": false}));
    // One has ended meanwhile.
    fake.fault("GET job/4711", false, || {
        Ok(error(404, 2017, "Invalid job id specified"))
    });
    fake.host.advance(25 * MINUTE);
    let said = fake.waits().progress;
    assert!(said.starts_with("1 job requeued; 3 jobs on node-1"), "{said}");
    assert_eq!(
        changes(&fake),
        [
            proof(),
            "GET job/4711/requeue".to_owned(),
            "GET job/4712/requeue".to_owned()
        ]
    );
}

#[test]
fn only_a_node_that_the_ladder_set_down_is_resumed() {
    const DOWN: &str =
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance down: maintenance";
    let fake = climber("5m down");
    fake.host.advance(25 * MINUTE);
    assert_eq!(
        fake.waits().progress.split(';').next(),
        Some("the node was set down")
    );
    assert_eq!(changes(&fake), [proof(), format!("POST node/node-1 DOWN {DOWN}")]);
    assert_eq!(
        (fake.state(NODE), fake.reason(NODE).as_str()),
        (vec!["DOWN".to_owned(), "DRAIN".to_owned()], DOWN)
    );
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(
        (changes(&fake), fake.state(NODE)),
        (
            vec!["POST node/node-1 RESUME Not responding".to_owned()],
            vec!["IDLE".to_owned()]
        )
    );

    // A node that is down by itself or does not respond is not revived.
    for (state, reason, after) in [
        (
            ["DOWN", "DRAIN", "NOT_RESPONDING"],
            format!("{DOWN} : Not responding"),
            "Not responding",
        ),
        (["DOWN", "DRAIN", ""], OURS.to_owned(), "Not responding"),
    ] {
        let fake = Fake::new();
        fake.node(NODE, &state, &reason);
        assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
        assert_eq!(changes(&fake), [format!("POST node/node-1 UNDRAIN {after}")]);
    }
}

#[test]
fn later_rungs_keep_the_mark_of_a_node_set_down() {
    let fake = climber("5m down, 1m cancel");
    fake.host.advance(29 * MINUTE);
    fake.waits();
    fake.job(9, &["COMPLETING"], NODE);
    fake.job(10, &["RUNNING"], NODE);
    changes(&fake);
    fake.waits();
    let down = "POST node/node-1 DRAIN scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance down: maintenance";
    assert_eq!(changes(&fake), [down, "DELETE job/10"]);
}

#[test]
fn a_request_with_a_lost_response_is_repeated() {
    let fake = climber("5m signal USR1");
    fake.host.advance(25 * MINUTE);
    fake.fault("DELETE", true, || Ok(error(504, 5004, "Socket timed out")));
    fake.fails(Phase::BeforeDrain, false, "retrying");
    changes(&fake);
    fake.waits();
    assert_eq!(
        changes(&fake),
        [proof(), "DELETE job/4711?signal=SIGUSR1".to_owned()]
    );
}

#[test]
fn a_job_that_slurm_cannot_alter_yet_is_retried() {
    let fake = climber("5m cancel");
    fake.host.advance(25 * MINUTE);
    let later = json!({"status": [{"error": {"code": 2020, "message": "Job can not be altered now"}}]});
    fake.fault("DELETE", false, move || Ok(ok(later)));
    fake.fails(Phase::BeforeDrain, false, "Job can not be altered now (2020)");
    changes(&fake);
    fake.waits();
    assert_eq!(changes(&fake), [proof(), "DELETE job/4711".to_owned()]);
    // A job that has ended meanwhile need not be cancelled.
    let fake = climber("5m cancel");
    fake.host.advance(25 * MINUTE);
    let over = json!({"status": [{"error": {"code": 2021, "message": "already completed"}}]});
    fake.fault("DELETE", false, move || Ok(ok(over)));
    assert!(fake.waits().progress.starts_with("no job to cancel"));
}

fn set(number: u64) -> serde_json::Value {
    json!({"set": true, "infinite": false, "number": number})
}

/// A task of array 8 on a node.
fn task(fake: &Fake, id: u64, task: u64, node: &str) {
    fake.raw_job(json!({
        "job_id": id, "job_state": ["RUNNING"], "nodes": node, "array_job_id": set(8), "array_task_id": set(task),
    }));
}

/// A part of a heterogeneous job on a node.
pub(super) fn part(fake: &Fake, whole: u64, offset: u64, node: &str) {
    fake.raw_job(json!({
        "job_id": whole + offset, "job_state": ["RUNNING"], "nodes": node, "het_job_id": set(whole),
        "het_job_offset": set(offset),
    }));
}

#[test]
fn a_rung_reaches_a_task_and_not_its_array() {
    for (action, said, request) in [
        ("cancel", "1 job cancelled", "DELETE job/8_3"),
        (
            "signal USR1",
            "SIGUSR1 sent to 1 job",
            "DELETE job/8_3?signal=SIGUSR1",
        ),
        ("requeue", "1 job requeued", "GET job/8_3/requeue"),
    ] {
        let fake = Fake::busy();
        fake.serves(&[45]);
        fake.host.config("ladder", &format!("5m {action}"));
        fake.host.deadline_in(30 * MINUTE);
        fake.no_jobs();
        // The last task to start has the number of the array.
        for (id, number, node) in [(9, 0, "node-2"), (10, 1, "node-3"), (8, 3, NODE)] {
            task(&fake, id, number, node);
        }
        fake.waits();
        fake.host.advance(25 * MINUTE);
        fake.requests();
        let waits = fake.waits();
        assert_eq!(waits.waiting_for[0].what, "job 8_3");
        assert!(waits.progress.starts_with(said), "{waits:?}");
        assert_eq!(changes(&fake), [proof(), request.to_owned()]);
    }
    // Without the number of its task nothing addresses this one alone.
    let fake = climber("5m cancel");
    fake.no_jobs();
    fake.raw_job(json!({"job_id": 8, "job_state": ["RUNNING"], "nodes": NODE, "array_job_id": set(8)}));
    fake.host.advance(25 * MINUTE);
    fake.waits();
    assert_eq!(changes(&fake), [proof()]);
}

#[test]
fn a_part_of_a_heterogeneous_job_is_left_alone_unless_configured() {
    let with_parts = |ladder: &str, choice: Option<&str>| {
        let fake = climber(ladder);
        if let Some(choice) = choice {
            fake.host.config("heterogeneous", choice);
        }
        fake.no_jobs();
        part(&fake, 17, 0, NODE);
        part(&fake, 17, 1, "node-[2-3]");
        fake.host.advance(25 * MINUTE);
        fake
    };
    let fake = with_parts("5m cancel", None);
    let waits = fake.waits();
    assert_eq!(waits.waiting_for[0].what, "job 17+0");
    let also = "a part of heterogeneous job 17, which also runs on node-[2-3]";
    assert!(waits.waiting_for[0].detail.contains(also), "{waits:?}");
    let left = format!("job 17+0, {also}, is left alone (`heterogeneous: wait`)");
    assert!(
        waits.progress.starts_with(&format!("no job to cancel; {left}")),
        "{waits:?}"
    );
    assert_eq!(changes(&fake), [proof()]);
    let events = fake.host.events();
    assert!(
        events
            .iter()
            .any(|event| event.contains("SlurmRungMissed") && event.contains(&left))
    );
    // To set the node down would end it as well.
    let fake = with_parts("5m down", None);
    assert!(
        fake.waits()
            .progress
            .starts_with("the node was not set down; job 17+0")
    );
    assert_eq!(changes(&fake), [proof()]);

    let fake = with_parts("5m cancel", Some("ladder"));
    let waits = fake.waits();
    assert!(
        waits.progress.starts_with(&format!(
            "1 job cancelled; job 17+0 is {also}: its other parts are reached as well"
        )),
        "{waits:?}"
    );
    assert_eq!(changes(&fake), [proof(), "DELETE job/17".to_owned()]);
    let events = fake.host.events();
    assert!(
        events
            .iter()
            .any(|event| event.contains("SlurmJobsCancelled") && event.contains(also)),
        "{events:?}"
    );
}

#[test]
fn a_later_part_of_a_heterogeneous_job_ends_alone_and_is_requeued_with_the_others() {
    for (action, said, request, others) in [
        ("cancel", "1 job cancelled", "DELETE job/18", "are not reached"),
        (
            "requeue",
            "1 job requeued",
            "GET job/17/requeue",
            "are reached as well",
        ),
    ] {
        let fake = Fake::busy();
        fake.serves(&[45]);
        fake.host.config("ladder", &format!("5m {action}"));
        fake.host.config("heterogeneous", "ladder");
        fake.host.deadline_in(30 * MINUTE);
        fake.no_jobs();
        part(&fake, 17, 0, "node-2");
        part(&fake, 17, 1, NODE);
        fake.waits();
        fake.host.advance(25 * MINUTE);
        fake.requests();
        let waits = fake.waits();
        let also = format!(
            "{said}; job 17+1 is a part of heterogeneous job 17, which also runs on node-2: its other parts {others}"
        );
        assert!(waits.progress.starts_with(&also), "{waits:?}");
        assert_eq!(changes(&fake), [proof(), request.to_owned()]);
    }
}

#[test]
fn a_rung_counts_the_jobs_of_all_its_steps() {
    let fake = climber("5m cancel");
    fake.no_jobs();
    for job in 1..=20 {
        fake.job(job, &["RUNNING"], NODE);
    }
    fake.host.advance(25 * MINUTE);
    // A cancelled job is no longer among those to cancel.
    assert!(fake.waits().progress.starts_with("20 jobs cancelled"));
}
