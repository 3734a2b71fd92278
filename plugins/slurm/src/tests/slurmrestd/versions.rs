//! The same drain with each version of the API. v0.0.40 to v0.0.45 are tested on a real one; the form of v0.0.39 follows the
//! documentation.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase};

use super::fake::{Fake, NODE, OURS, error};

const VERSIONS: [u32; 7] = [39, 40, 41, 42, 43, 44, 45];
const MINUTE: Duration = Duration::from_secs(60);

fn server(version: u32) -> Fake {
    let fake = Fake::busy();
    fake.serves(&[version]);
    fake
}

#[test]
fn each_version_drains_waits_and_undrains() {
    for version in VERSIONS {
        let fake = server(version);
        let waits = fake.waits();
        assert_eq!(
            waits.progress, "1 job on node-1, at most until 2027-01-15 09:00 UTC",
            "{version}"
        );
        assert_eq!(
            waits.waiting_for[0].detail, "train of alice: running, at most until 2027-01-15 09:00 UTC",
            "{version}"
        );
        assert_eq!(waits.waiting_for[0].since, Some(fake.host.now()), "{version}");
        assert_eq!(fake.reason(NODE), OURS, "{version}");
        // The job has ended and its epilog runs, which v0.0.39 shows only for the node.
        fake.job(4711, &["COMPLETED", "COMPLETING"], NODE);
        fake.node(NODE, &["IDLE", "DRAIN", "COMPLETING"], OURS);
        assert!(
            matches!(fake.run_until_stable(), Outcome::Pending(_)),
            "{version}"
        );
        fake.job(4711, &["COMPLETED"], NODE);
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        assert_eq!(fake.run_until_stable(), Outcome::Done, "{version}");
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done, "{version}");
        assert_eq!(fake.state(NODE), ["IDLE"], "{version}");
    }
}

#[test]
fn each_version_climbs_the_ladder_and_requeues_if_supported() {
    for version in VERSIONS {
        // v0.0.45 supports it, and is detected beside older versions.
        for requeues in [false, true] {
            let fake = server(version);
            fake.host
                .config("ladder", "15m signal USR1, 10m requeue, 5m cancel");
            fake.host.deadline_in(30 * MINUTE);
            if requeues {
                fake.serves(&[version, 45]);
            }
            fake.waits();
            fake.requests();
            let climbed = |minutes: u32| {
                fake.host.advance(minutes * MINUTE);
                let said = fake.waits().progress;
                let said = said.split(';').next().unwrap().to_owned();
                let last = fake
                    .requests()
                    .into_iter()
                    .rfind(|line| line.contains("job/4711"));
                (said, last.unwrap_or_default())
            };
            let (said, last) = climbed(15);
            assert_eq!(said, "SIGUSR1 sent to 1 job", "{version}");
            assert_eq!(last, "DELETE job/4711?signal=SIGUSR1", "{version}");
            let (said, last) = climbed(5);
            let expected = match requeues || version == 45 {
                true => "1 job requeued",
                false => "this Slurm cannot requeue a job",
            };
            assert_eq!(said, expected, "{version}");
            assert_eq!(last, "GET job/4711/requeue", "{version}");
            fake.job(4711, &["RUNNING"], NODE);
            let (said, last) = climbed(5);
            assert_eq!(said, "1 job cancelled", "{version}");
            assert_eq!(last, "DELETE job/4711", "{version}");
        }
    }
}

#[test]
fn a_refused_requeue_is_retried_and_requeued_jobs_are_not_awaited() {
    let fake = server(44);
    fake.serves(&[43, 44, 45]);
    fake.job(4712, &["RUNNING"], NODE);
    fake.host.config("ladder", "5m requeue");
    fake.host.deadline_in(30 * MINUTE);
    fake.waits();
    fake.host.advance(25 * MINUTE);
    fake.fault("GET job/4712", false, || {
        Ok(error(500, 2009, "Requested operation is presently disabled"))
    });
    fake.requests();
    fake.fails(Phase::BeforeDrain, false, "presently disabled (2009)");
    assert!(fake.waits().progress.starts_with("1 job requeued"));
    let asked = fake.requests();
    let of = |job: &str| asked.iter().filter(|line| line.contains(job)).count();
    // The first job is no longer on the node.
    assert_eq!((of("job/4711/requeue"), of("job/4712/requeue")), (1, 2));
    fake.waits();
    assert!(fake.requests().iter().all(|line| !line.contains("requeue")));
}

#[test]
fn a_requeued_job_no_longer_holds_the_node() {
    for state in [&["PENDING"][..], &["PENDING", "COMPLETING"]] {
        let fake = server(44);
        fake.waits();
        fake.job(4711, state, if state.len() == 1 { "" } else { NODE });
        fake.node(NODE, &["IDLE", "DRAIN"], OURS);
        let done = fake.run_until_stable() == Outcome::Done;
        assert_eq!(done, state.len() == 1, "{state:?}");
    }
}
