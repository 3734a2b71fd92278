//! Undraining, and only our own drains.

use std::time::Duration;

use scupper_sdk::{Outcome, Phase, http::Error};

use super::fake::{Fake, NODE, OURS, error};

#[test]
fn cancel_undrains_the_node_that_this_drain_drained() {
    let fake = Fake::busy();
    fake.waits();
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["MIXED"]);
    fake.requests();
    // A crash may repeat the step.
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
}

#[test]
fn cancel_does_not_undrain_other_drains() {
    for reason in [
        "bad disk",
        "",
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-other: other",
        "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance2: maintenance2",
        "scupper: node=node-11 cluster=uid-of-cluster drain=uid-of-maintenance: maintenance",
        " scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance: maintenance",
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], reason);
        assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
        assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"], "{reason}");
        assert_eq!(fake.reason(NODE), reason);
    }
}

#[test]
fn uncordon_undrains_any_drain_of_ours() {
    let fake = Fake::new();
    fake.run_until_stable();
    fake.node("node-2", &["IDLE", "DRAIN"], "bad disk");
    fake.host.drain_named("maintenance-complete");
    fake.host.cordon(true);
    assert_eq!(fake.step(Phase::BeforeUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"], "the node is still cordoned");
    fake.host.uncordon();
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(
        (fake.state(NODE), fake.state("node-2")),
        (
            vec!["IDLE".to_owned()],
            vec!["IDLE".to_owned(), "DRAIN".to_owned()]
        )
    );
}

#[test]
fn under_a_foreign_cordon_it_is_undrained_before_the_uncordon() {
    let fake = Fake::new();
    fake.run_until_stable();
    fake.host.cordon(false);
    assert_eq!(fake.step(Phase::BeforeUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn slurm_nodes_are_found_again_when_their_pods_are_gone() {
    let fake = Fake::new();
    fake.host.config("slurm-node", "pods");
    fake.node("worker-0", &["IDLE", "DRAIN"], OURS);
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state("worker-0"), ["IDLE"]);
}

#[test]
fn a_very_long_name_is_recognized() {
    let fake = Fake::new();
    let long = "n".repeat(253);
    fake.host.node_named(&long);
    fake.node(&long, &["IDLE"], "");
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert!(
        fake.reason(&long)
            .contains(" cluster=uid-of-cluster drain=uid-of-maintenance: ")
    );
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(&long), ["IDLE"]);
    let fake = Fake::new();
    fake.host.drain_named(&"d".repeat(253));
    fake.run_until_stable();
    assert_eq!(fake.reason(NODE).chars().count(), 256);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn an_outage_of_slurm_is_retried() {
    let fake = Fake::new();
    fake.run_until_stable();
    for begins in ["GET nodes/", "POST "] {
        for number in [1800, 5004] {
            fake.fault(begins, false, move || Ok(error(502, number, "away")));
            fake.fails(Phase::OnCancel, false, "away");
        }
    }
    assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"]);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn an_undo_that_does_not_reach_slurm_names_the_slurm_node() {
    for phase in [Phase::OnCancel, Phase::AfterUncordon] {
        let fake = Fake::new();
        fake.host.config("slurm-node-table", "node-1=gpu-1");
        fake.node("gpu-1", &["IDLE", "DRAIN"], OURS);
        fake.fault("GET nodes/", false, || Ok(error(502, 1800, "away")));
        let words = "gpu-1 may still be drained in Slurm: slurmrestd cannot reach slurmctld: ";
        fake.fails(phase, false, words);
    }
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], OURS);
    fake.fault("GET nodes/", false, || {
        Ok(error(511, 1007, "Protocol authentication error"))
    });
    let words = "node-1 may still be drained in Slurm: Slurm rejects the token";
    fake.fails(Phase::OnCancel, true, words);
}

#[test]
fn a_cancel_looks_again_at_once_whatever_the_poll_interval() {
    let fake = Fake::new();
    fake.host.config("poll-seconds", "60");
    fake.run_until_stable();
    fake.fault("POST", false, || Err(Error::Timeout("no response".to_owned())));
    fake.fault("GET nodes/", false, || {
        Err(Error::Timeout("no response".to_owned()))
    });
    match fake.step(Phase::OnCancel) {
        Outcome::Failed(failure) => assert_eq!(failure.retry_after, Some(1_000), "{failure:?}"),
        other => panic!("{other:?}"),
    }
    match fake.step(Phase::OnCancel) {
        Outcome::Pending(pending) => assert_eq!(pending.again_after, 1_000, "{pending:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn cancelling_a_second_drain_keeps_the_node_drained() {
    let first = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-first: first";
    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], first);
    fake.host.drain_named("second");
    fake.host.found_drained();
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(fake.reason(NODE), first, "the mark stays the first one's");
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"]);
    fake.host.drain_named("maintenance-complete");
    fake.host.uncordon();
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn a_node_resumed_since_is_drained_again_and_undrained_by_a_cancel() {
    let fake = Fake::new();
    fake.node(NODE, &["IDLE"], "");
    fake.host.drain_named("second");
    fake.host.found_drained();
    assert_eq!(fake.run_until_stable(), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"]);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn under_the_cordon_of_an_earlier_drain_its_mark_stays_and_the_ladder_is_climbed() {
    let first = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-first: first";
    let fake = Fake::busy();
    fake.node(NODE, &["MIXED", "DRAIN"], first);
    // The first drain failed and kept its cordon; the node is not drained.
    fake.host.cordon(true);
    fake.host.drain_named("second");
    fake.host.config("ladder", "1m signal USR1, 30s down");
    fake.host.deadline_in(Duration::from_secs(65));
    fake.waits();
    fake.host.advance(Duration::from_secs(10));
    assert!(fake.waits().progress.starts_with("SIGUSR1 sent to "));
    assert_eq!(fake.reason(NODE), first);
    fake.host.advance(Duration::from_secs(30));
    fake.run_until_stable();
    let down = "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-first down: first";
    assert_eq!(fake.reason(NODE), down);
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(
        (fake.state(NODE), fake.reason(NODE).as_str()),
        (vec!["DOWN".to_owned(), "DRAIN".to_owned()], down)
    );
    fake.host.uncordon();
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
}

#[test]
fn the_drain_in_slurm_follows_the_cordon_unless_configured_otherwise() {
    for (choice, held, drained) in [
        ("", true, true),
        ("follow", true, true),
        ("follow", false, false),
        ("undo", true, false),
        ("keep", false, true),
        ("keep", true, true),
    ] {
        let fake = Fake::new();
        if !choice.is_empty() {
            fake.host.config("on-failure", choice);
        }
        fake.run_until_stable();
        if held {
            fake.host.held();
        }
        if choice == "keep" && !held {
            // Scupper reports a hook that failed until an uncordon.
            let words = "Slurm keeps node-1 drained, as configured (`on-failure: keep`)";
            fake.fails(Phase::OnCancel, true, words);
        } else {
            assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
        }
        let is_drained = fake.state(NODE).contains(&"DRAIN".to_owned());
        assert_eq!(is_drained, drained, "{choice:?} {held}");
        fake.host.drain_named("maintenance-complete");
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
        assert_eq!(fake.state(NODE), ["IDLE"], "{choice:?} {held}");
    }
}

#[test]
fn with_on_failure_keep_nothing_is_left_where_this_drain_drained_nothing() {
    let fake = Fake::new();
    fake.host.config("on-failure", "keep");
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    fake.node(NODE, &["IDLE", "DRAIN"], "bad disk");
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
}
