//! Drains that end, or go on, while the driver that began them is gone: what each terminal says.

use serde_json::{Value, json};

use crate::kubelet_node::{Agent, EVENTS, asks, until};
use crate::rig::{Rig, Run, Running};
use crate::taking_over::{held_elsewhere, lift_budget};

/// A driver drains worker-1 for this command, a budget holds the pod, and then the driver is killed.
fn abandoned(pod: impl FnOnce(&Rig) -> Value) -> (Rig, Running) {
    let rig = Rig::new();
    rig.apply(pod(&rig));
    rig.budget("keep-web", "web");
    let agent = Agent::start(&rig, false);
    let mut drain = rig.start(&asks("drain", &[]));
    drain.prints("waits    shop/web");
    until("its status is there", || !status_of(&rig).is_null());
    agent.driver.kill();
    (rig, drain)
}

fn quick(rig: &Rig) -> Value {
    rig.pod("web", "worker-1").grace(300).takes(0.1).into()
}

/// What the process that drains has published.
fn status_of(rig: &Rig) -> Value {
    rig.node("worker-1")["metadata"]["annotations"]["scupper.dev/drain-status"].clone()
}

/// Another command has finished the drain: what that and the first one have printed.
fn finished_by_another() -> (Rig, Run, Run) {
    let (rig, first) = abandoned(quick);
    held_elsewhere(&rig, 1);
    lift_budget(&rig);
    let second = rig.run(&["drain", "worker-1", "--take-over"]);
    assert_eq!(second.code, Some(0), "{second:#?}");
    (rig, second, first.ended())
}

#[track_caller]
fn fails_with(run: &Run, words: &str) {
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stderr.contains(words), "{run:#?}");
}

const STAYS: &str = "its driver has not released ";
const HELD: &str = "no drain is under way, and its driver has not released LifecycleEvent drain-worker-1-";

/// The LifecycleEvent stays until the driver is back, which may be never.
#[test]
fn a_cancel_without_a_driver_ends_the_terminal_that_follows_and_says_what_stays() {
    let (rig, first) = abandoned(quick);
    held_elsewhere(&rig, 1);
    let run = rig.run(&asks("cancel", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stderr.contains(STAYS), "{run:#?}");
    let first = first.ended();
    assert_eq!(first.code, Some(5), "{first:#?}");
    assert!(
        first.stdout.contains("Cancelled") && first.stdout.contains(STAYS),
        "{first:#?}"
    );
    // It does not wait.
    fails_with(&rig.run(&asks("cancel", &["--wait-timeout", "1h"])), HELD);
    fails_with(&rig.run(&asks("drain", &[])), HELD);
    let run = rig.run(&["status"]);
    assert!(run.stdout.contains(HELD), "{run:#?}");
}

#[test]
fn a_drain_that_another_command_finishes_ends_the_terminal_that_follows() {
    let (_rig, _, first) = finished_by_another();
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert!(first.stdout.contains(STAYS), "{first:#?}");
}

/// The uncordon removes what the node says of that drain, and the driver would begin it anew.
#[test]
fn a_node_that_was_given_back_is_not_drained_again_when_its_driver_is_back() {
    let (rig, _, _) = finished_by_another();
    fails_with(&rig.run(&asks("uncordon", &[])), HELD);
    let run = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    rig.apply(rig.pod("late", "worker-1"));
    let _agent = Agent::start(&rig, false);
    until("its driver releases the event", || rig.objects(EVENTS).is_empty());
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["late"]);
}

/// The same where the cordon was lifted without Scupper.
#[test]
fn a_drain_that_is_done_evicts_nothing_that_came_after_the_cordon_was_lifted() {
    let (rig, run, _) = finished_by_another();
    assert!(
        run.stdout.contains("to give it back: scupper uncordon worker-1"),
        "{run:#?}"
    );
    rig.inside(|| {
        let store = rig.api.store();
        store.edit("nodes", "", "worker-1", |node| {
            node["spec"]["unschedulable"] = json!(false);
        })
    })
    .unwrap();
    rig.apply(rig.pod("late", "worker-1"));
    let _agent = Agent::start(&rig, false);
    until("its event succeeds", || rig.objects(EVENTS).is_empty());
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["late"]);
}

/// An event that its driver has not released is not the drain that is cancelled.
#[test]
fn a_cancel_of_a_drain_from_a_terminal_does_not_wait_for_an_old_event() {
    let (rig, first) = abandoned(quick);
    held_elsewhere(&rig, 1);
    let run = rig.run(&asks("cancel", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    first.ended();
    let mut local = rig.start(&["drain", "worker-1", "--local"]);
    local.prints("waits    shop/web");
    let run = rig.run(&asks("cancel", &["--wait-timeout", "1h"]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.stdout, "node worker-1: cancelled: command drain-worker-1\n");
    assert!(!run.stderr.contains("rolled the drain back"), "{run:#?}");
    assert_eq!(local.ended().code, Some(5));
}

/// Its pod only takes its time: of such a drain nothing is published otherwise.
#[test]
fn the_status_is_of_the_process_that_continues() {
    let slow = |rig: &Rig| rig.pod("web", "worker-1").grace(300).takes(200.0).into();
    let (rig, first) = abandoned(slow);
    held_elsewhere(&rig, 1);
    lift_budget(&rig);
    let before = status_of(&rig);
    let mut second = rig.start(&["drain", "worker-1", "--take-over"]);
    second.prints("wave     ");
    until("it has published its own", || status_of(&rig) != before);
    second.kill();
    first.kill();
}

/// No process has renewed the Lease for hours: a command that joins need not watch it for another one.
#[test]
fn whoever_joins_a_drain_without_a_driver_learns_it_at_once() {
    let (rig, first) = abandoned(quick);
    first.kill();
    rig.leased_to("scupper/scupper-x7d2p", 3600);
    let mut lease = rig.objects("leases.coordination.k8s.io").pop().unwrap();
    lease["spec"]["renewTime"] = json!("2026-01-01T00:00:00.000000Z");
    rig.apply(lease);
    let joined = rig.start(&asks("drain", &[]));
    until("it says so", || {
        joined.stderr().contains("its driver is not running")
    });
    joined.kill();
}
