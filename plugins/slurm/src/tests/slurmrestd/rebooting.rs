//! `scontrol reboot` before and during a drain.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase};

use super::fake::{Fake, NODE, OURS};

#[test]
fn a_drain_waits_for_a_requested_reboot_and_drains_the_node_behind_it() {
    for flags in [
        &["MIXED", "DRAIN", "REBOOT_REQUESTED"],
        &["DOWN", "DRAIN", "REBOOT_ISSUED"],
    ] {
        let fake = Fake::new();
        fake.node(NODE, flags, "new kernel");
        assert_eq!(fake.step(Phase::BeforeCordon), Outcome::Done);
        fake.host.cordon(true);
        let waits = fake.waits();
        assert_eq!(
            waits.waiting_for[0].detail,
            "reboots by `scontrol reboot`: new kernel"
        );
        let events = fake.host.events();
        assert!(
            events.iter().any(|event| event.contains("SlurmNodeReboots"))
                && events.iter().all(|event| !event.contains("FoundDrained")),
            "{events:?}"
        );
        assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
        // `nextstate=RESUME`
        fake.node(NODE, &["IDLE"], "");
        assert_eq!(fake.run_until_stable(), Outcome::Done);
        assert_eq!(
            (fake.state(NODE), fake.reason(NODE).as_str()),
            (vec!["IDLE".to_owned(), "DRAIN".to_owned()], OURS)
        );
    }
}

/// A busy node that was rebooted on request, resumed by Slurm and then drained by us.
fn rebooted() -> Fake {
    let fake = Fake::busy();
    fake.node(NODE, &["MIXED", "DRAIN", "REBOOT_REQUESTED"], "new kernel");
    fake.waits();
    fake.host.advance(Duration::from_secs(60));
    fake.node(NODE, &["MIXED"], "");
    assert_eq!(fake.waits().waiting_for[0].what, "job 4711");
    assert_eq!(fake.reason(NODE), OURS);
    fake.requests();
    fake
}

#[test]
fn an_operator_who_resumes_the_node_after_its_reboot_is_not_overridden() {
    for reason in [OURS, ""] {
        let fake = rebooted();
        fake.node(NODE, &["MIXED"], reason);
        let waits = fake.waits();
        assert!(
            waits.progress.starts_with("an operator resumed node-1 in Slurm"),
            "{}",
            waits.progress
        );
        assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
        // Until there is another reboot.
        fake.node(NODE, &["MIXED", "DRAIN", "REBOOT_REQUESTED"], "newer kernel");
        fake.waits();
        fake.node(NODE, &["MIXED"], "");
        assert_eq!(fake.waits().waiting_for[0].what, "job 4711");
    }
}

#[test]
fn the_drain_behind_a_reboot_is_repeated_if_slurmctld_loses_it() {
    let fake = rebooted();
    fake.node(NODE, &["MIXED"], "");
    fake.restart();
    assert_eq!(fake.waits().waiting_for[0].what, "job 4711");
    assert_eq!(fake.reason(NODE), OURS);
}
