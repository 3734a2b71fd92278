//! The annotation: when it is set and when it is removed.

use scupper_sdk::{Outcome, Phase, Subject, log::Level, testing::Host};

use crate::Slurm;
use crate::tests::{REASON, busy_host};

const OURS: &str = "[S] [Scupper] maintenance";
const THEIRS: &str = "[T] [NVSentinel] 48 GPU:0 - XID error";

fn step(host: &Host, phase: Phase) -> Outcome {
    host.step::<Slurm>(phase, Subject::Node)
}

fn reason(host: &Host) -> Option<String> {
    host.node_annotation(REASON)
}

#[test]
fn the_reason_is_set_before_the_cordon() {
    let host = busy_host();
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    assert_eq!(reason(&host).as_deref(), Some(OURS));
    // A step may be repeated after a crash.
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    assert_eq!(reason(&host).as_deref(), Some(OURS));
}

#[test]
fn a_node_without_slurm_pods_gets_no_reason() {
    let host = Host::new();
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        assert_eq!(step(&host, phase), Outcome::Done);
        assert_eq!(reason(&host), None);
    }
}

#[test]
fn the_reason_is_one_line_of_at_most_256_characters() {
    let host = busy_host();
    host.config(
        "reason",
        &format!("firmware\nupgrade\t\u{7}{}", "\u{e9}".repeat(300)),
    );
    step(&host, Phase::BeforeCordon);
    let reason = reason(&host).unwrap();
    assert!(
        reason.starts_with("[S] [Scupper] maintenance: firmware upgrade"),
        "{reason}"
    );
    assert_eq!(reason.chars().count(), 256);
    assert!(!reason.contains(char::is_control));
}

#[test]
fn a_foreign_reason_is_kept_and_logged() {
    let host = busy_host();
    host.annotate_node(REASON, THEIRS);
    for phase in [
        Phase::BeforeCordon,
        Phase::BeforeDrain,
        Phase::OnCancel,
        Phase::BeforeUncordon,
        Phase::AfterUncordon,
    ] {
        step(&host, phase);
        assert_eq!(reason(&host).as_deref(), Some(THEIRS), "{phase:?}");
    }
    let log = host.log();
    assert!(
        log.iter()
            .any(|(level, line)| *level == Level::Info && line.contains(THEIRS)),
        "{log:?}"
    );
}

#[test]
fn on_a_cordoned_node_the_reason_is_late_and_that_is_logged() {
    let host = busy_host();
    host.cordon(false);
    assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Pending(_)));
    assert_eq!(reason(&host).as_deref(), Some(OURS));
    let warnings = |host: &Host| {
        host.log()
            .iter()
            .filter(|(level, _)| *level == Level::Warn)
            .count()
    };
    assert_eq!(warnings(&host), 1);
    // Logged once, not at every poll.
    step(&host, Phase::BeforeDrain);
    assert_eq!(warnings(&host), 1);
}

#[test]
fn while_waiting_the_annotation_is_not_set_again() {
    let host = busy_host();
    step(&host, Phase::BeforeCordon);
    host.cordon(true);
    step(&host, Phase::BeforeDrain);
    host.annotate_node(REASON, THEIRS);
    step(&host, Phase::BeforeDrain);
    assert_eq!(reason(&host).as_deref(), Some(THEIRS));
}

#[test]
fn a_leftover_reason_of_an_earlier_drain_is_replaced() {
    let host = busy_host();
    host.annotate_node(REASON, "[S] [Scupper] last-week");
    step(&host, Phase::BeforeCordon);
    assert_eq!(reason(&host).as_deref(), Some(OURS));
}

#[test]
fn cancel_removes_the_reason_of_this_drain_only() {
    let host = busy_host();
    host.config("reason", "firmware");
    step(&host, Phase::BeforeCordon);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(reason(&host), None);

    for other in [
        "[S] [Scupper] maintenance-2",
        "[S] [Scupper] other: maintenance",
        "maintenance",
        "",
    ] {
        host.annotate_node(REASON, other);
        assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
        assert_eq!(reason(&host).as_deref(), Some(other));
    }
}

#[test]
fn a_drain_with_a_very_long_name_recognizes_its_reason() {
    let host = busy_host();
    host.drain_named(&"n".repeat(253));
    step(&host, Phase::BeforeCordon);
    assert_eq!(reason(&host).unwrap().chars().count(), 256);
    step(&host, Phase::OnCancel);
    assert_eq!(reason(&host), None);
}

#[test]
fn uncordon_removes_the_reason_of_any_drain() {
    let host = busy_host();
    step(&host, Phase::BeforeCordon);
    host.cordon(true);
    host.drain_named("maintenance-complete");
    // While the node is cordoned, slurm-operator could set its own reason instead.
    step(&host, Phase::BeforeUncordon);
    assert_eq!(reason(&host).as_deref(), Some(OURS));
    // The step may see an older node, still with the cordon.
    step(&host, Phase::AfterUncordon);
    assert_eq!(reason(&host), None);
}

#[test]
fn under_a_foreign_cordon_the_reason_is_removed_before_the_uncordon() {
    let host = busy_host();
    host.cordon(false);
    step(&host, Phase::BeforeDrain);
    step(&host, Phase::BeforeUncordon);
    assert_eq!(reason(&host), None);
}

#[test]
fn an_outage_of_the_api_server_is_retried() {
    let host = busy_host();
    host.outage(Some("connection refused"));
    let Outcome::Failed(failure) = step(&host, Phase::BeforeCordon) else {
        panic!("it cannot have worked")
    };
    assert_eq!(
        (failure.message.as_str(), failure.retry_after),
        ("connection refused", Some(5_000))
    );
    host.outage(None);
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
    assert_eq!(reason(&host).as_deref(), Some(OURS));
}

#[test]
fn cancelling_a_second_drain_keeps_the_reason() {
    let host = busy_host();
    step(&host, Phase::BeforeCordon);
    host.cordon(true);
    // The command uses the same name for each drain.
    host.drain_named("maintenance");
    host.found_drained();
    step(&host, Phase::BeforeDrain);
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(reason(&host).as_deref(), Some(OURS));
    host.drain_named("maintenance-complete");
    step(&host, Phase::AfterUncordon);
    assert_eq!(reason(&host), None);
}

#[test]
fn the_reason_follows_the_cordon_unless_configured_otherwise() {
    for (choice, held, stays) in [
        ("follow", true, true),
        ("follow", false, false),
        ("undo", true, false),
        ("keep", false, true),
        ("keep", true, true),
    ] {
        let host = busy_host();
        host.config("on-failure", choice);
        step(&host, Phase::BeforeCordon);
        host.cordon(true);
        if held {
            host.held();
        }
        match step(&host, Phase::OnCancel) {
            // Scupper reports a hook that failed until an uncordon.
            Outcome::Failed(failure) if choice == "keep" && !held => assert_eq!(
                (failure.message.as_str(), failure.retry_after),
                (
                    "the annotation nodeset.slinky.slurm.net/node-cordon-reason stays, as configured (`on-failure: keep`)",
                    None
                )
            ),
            outcome => assert_eq!((outcome, choice == "keep" && !held), (Outcome::Done, false)),
        }
        assert_eq!(reason(&host).is_some(), stays, "{choice} {held}");
        host.annotate_node(REASON, THEIRS);
        assert_eq!(step(&host, Phase::OnCancel), Outcome::Done, "{choice} {held}");
    }
}
