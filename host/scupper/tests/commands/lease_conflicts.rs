//! Two processes want to drain one node: one drains, the other waits until the node's Lease is free.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use scupper_simulator::api::{Action, Fault, Forbidden};
use serde_json::Value;

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Running};

const LEASES: &str = "leases.coordination.k8s.io";

fn lease(rig: &Rig) -> Option<Value> {
    rig.objects(LEASES).pop()
}

/// A second process, which stands by.
fn beside(rig: &Rig) -> Running {
    let second = rig.start(&["drain", "worker-1", "--take-over"]);
    until("the second one stands by", || {
        second.stderr().contains("waiting for the node's Lease")
    });
    second
}

fn deletes_of_stuck(rig: &Rig) -> usize {
    let requests = rig.api.requests().into_iter();
    requests
        .filter(|it| it.subresource == "eviction" && it.path.contains("/stuck/"))
        .count()
}

#[test]
fn a_drain_holds_the_lease_of_its_node_and_releases_it() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    let held = lease(&rig).unwrap();
    assert_eq!(
        (&held["metadata"]["name"], &held["metadata"]["namespace"]),
        (&"worker-1".into(), &"scupper".into())
    );
    assert!(held["metadata"]["finalizers"].is_null(), "{held}");
    assert_eq!(held["spec"]["leaseDurationSeconds"], 30);
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(drain.ended().code, Some(0));
    assert_eq!(lease(&rig), None, "the next process need not wait");
    let drain = rig.drain_of_stuck_pod();
    drain.signal(Signal::INT);
    assert_eq!(drain.ended().code, Some(5));
    assert_eq!(lease(&rig), None);
}

#[test]
fn a_takeover_waits_while_the_holder_of_the_lease_lives() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    let holder = lease(&rig).unwrap()["spec"]["holderIdentity"].clone();
    let second = beside(&rig);
    assert_eq!(lease(&rig).unwrap()["spec"]["holderIdentity"], holder);
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(first.ended().code, Some(0));
    let run = second.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(deletes_of_stuck(&rig), 1);
    assert_eq!(lease(&rig), None);
}

#[test]
fn a_killed_process_is_known_to_be_dead_where_it_can_be_seen() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    first.kill();
    let second = rig.start(&["drain", "worker-1", "--take-over"]);
    until("the second one has the lease", || {
        lease(&rig).is_some_and(|lease| lease["spec"]["leaseTransitions"] == 1)
    });
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = second.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!run.stderr.contains("waiting for the node's Lease"), "{run:#?}");
}

/// A cancel in the meantime counts as soon as the lease is its own.
#[test]
fn a_takeover_stopped_while_it_waits_cancels_the_drain() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    let second = beside(&rig);
    second.signal(Signal::INT);
    first.kill();
    let run = second.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains("Cancelled in"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["stuck"]);
}

/// The node shows nothing of it, so there is nothing to wait for.
#[test]
fn a_drain_that_is_stopped_before_it_begins_ends_at_once() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.leased_to("somebody", 30);
    let drain = rig.start(&["drain", "worker-1"]);
    until("it stands by", || {
        drain.stderr().contains("waiting for the node's Lease")
    });
    drain.signal(Signal::INT);
    let run = drain.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert_eq!(lease(&rig).unwrap()["spec"]["holderIdentity"], "somebody");
    assert_eq!((rig.pods(), rig.mark("worker-1")), (vec!["web".to_owned()], None));
}

/// The process before it reverted everything meanwhile: the node's state no longer shows its drain.
#[test]
fn a_drain_that_waited_uses_the_node_as_it_is_then() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    let second = beside(&rig);
    first.signal(Signal::INT);
    assert_eq!(first.ended().code, Some(5));
    until("the second one drains", || rig.is_cordoned("worker-1"));
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = second.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
}

/// The cancel was not yet written when the lease was lost.
#[test]
fn a_cancel_requested_before_the_lease_was_lost_counts_once_it_is_held_again() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    let node = Fault::new(Action::Status(503, None)).path("/api/v1/nodes/*");
    rig.api.faults([node.method("PATCH")]);
    drain.signal(Signal::INT);
    let refused = || {
        let requests = rig.api.requests().into_iter();
        requests.filter(|it| it.status == Some(503)).count()
    };
    until("the order was to be written", || refused() > 0);
    rig.leased_to("somebody", 30);
    until("it knows", || {
        drain
            .stderr()
            .contains("could not be renewed: nothing is evicted until it is")
    });
    rig.api.clear_faults();
    rig.api.store().delete(LEASES, "scupper", "worker-1").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["stuck"]);
}

/// As an API server that has just started may do: it knows some roles before others.
#[test]
fn a_refusal_while_the_lease_is_held_again_does_not_end_the_drain() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    rig.leased_to("somebody", 30);
    until("it knows", || {
        drain
            .stderr()
            .contains("could not be renewed: nothing is evicted until it is")
    });
    let node = Fault::new(Action::Status(403, None)).path("/api/v1/nodes/worker-1");
    rig.api.faults([node.method("GET").count(2)]);
    rig.api.store().delete(LEASES, "scupper", "worker-1").unwrap();
    until("it was refused", || {
        drain
            .stderr()
            .contains("the node could not be read; trying again")
    });
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(rig.is_cordoned("worker-1"));
}

/// A stopped process looks alive: only time shows the difference. It wakes up, and evicts nothing more.
#[test]
fn a_suspended_process_loses_the_lease_and_continues_only_after_the_other() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").grace(1));
    rig.budget("all", "web");
    let mut first = rig.start(&["drain", "worker-1"]);
    first.prints("budget all blocks it");
    first.signal(Signal::STOP);
    let mut second = rig.start(&["drain", "worker-1", "--take-over"]);
    second.prints("budget all blocks it");
    assert!(
        second.stderr().contains("waiting for the node's Lease"),
        "{}",
        second.stderr()
    );
    first.signal(Signal::CONT);
    until("the first one knows", || {
        first
            .stderr()
            .contains("could not be renewed: nothing is evicted until it is")
    });
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "all")
        .unwrap();
    let run = second.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    // Its line `evict` is missing if the pod is gone before the eviction is answered.
    assert!(run.stdout.contains("gone     shop/web"), "{run:#?}");
    let run = first.ended();
    let evicted = ["evict    shop/web", "gone     shop/web"];
    let has_evicted = evicted.iter().any(|line| run.stdout.contains(line));
    assert!(!has_evicted, "two evictors: {run:#?}");
}

#[test]
fn a_lease_that_cannot_be_taken_is_reported() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.api.set_forbidden(Forbidden {
        user_agent: "scupper".to_owned(),
        user: String::new(),
        verb: "create".to_owned(),
        resource: LEASES.to_owned(),
    });
    let run = rig.run(&["drain", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    for words in [
        "create lease scupper/worker-1",
        "would not be noticed",
        "scupper doctor",
    ] {
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
    }
    rig.api.clear_forbidden();
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&["drain", "worker-1", "--lease-namespace", "nowhere"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stderr.contains("there is no namespace nowhere for it"),
        "{run:#?}"
    );
}

/// The given time limit also applies while it waits.
#[test]
fn a_waiting_drain_ends_at_its_deadline() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.leased_to("somebody", 30);
    let drain = rig.start(&["drain", "worker-1", "--timeout", "3s"]);
    let begun = Instant::now();
    let run = drain.ended();
    let took = begun.elapsed();
    assert_eq!(run.code, Some(6), "{run:#?}");
    assert!(
        run.stderr
            .contains("the deadline passed before this command had the node's Lease"),
        "{run:#?}"
    );
    assert!(
        (Duration::from_secs(3)..Duration::from_secs(20)).contains(&took),
        "{took:?}: {run:#?}"
    );
    // Nothing has started: another process holds the lease, and the node is unchanged.
    assert_eq!(lease(&rig).unwrap()["spec"]["holderIdentity"], "somebody");
    assert_eq!((rig.pods(), rig.mark("worker-1")), (vec!["web".to_owned()], None));
}

#[test]
fn a_waiting_driver_ends_the_drain_at_its_deadline() {
    let rig = Rig::new();
    let agent = Agent::start(&rig, false);
    rig.apply(rig.pod("web", "worker-1"));
    rig.leased_to("somebody", 30);
    let begun = Instant::now();
    let run = rig.run(&asks("drain", &["--timeout", "3s"]));
    let took = begun.elapsed();
    assert_eq!(run.code, Some(6), "{run:#?}");
    assert!(took < Duration::from_secs(25), "{took:?}: {run:#?}");
    let log = agent.driver.stderr();
    assert!(log.contains("the deadline passed while"), "{log}{run:#?}");
    assert!(
        run.stdout.contains("with one pod still there: shop/web"),
        "{run:#?}"
    );
    assert_eq!((rig.pods(), rig.mark("worker-1")), (vec!["web".to_owned()], None));
}

/// A laptop is suspended while its drain runs, a colleague cancels the drain, and the laptop resumes.
#[test]
fn a_suspended_process_does_not_begin_again_what_was_cancelled_meanwhile() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    first.signal(Signal::STOP);
    let run = rig.run(&["cancel", "worker-1", "--wait-timeout", "120s"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stderr.contains("has rolled the drain back"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
    first.signal(Signal::CONT);
    until("the first one knows", || {
        first
            .stderr()
            .contains("could not be renewed: nothing is evicted until it is")
    });
    std::thread::sleep(Duration::from_secs(8));
    assert!(
        !rig.is_cordoned("worker-1"),
        "it drains again: {}\n{}",
        first.stdout(),
        first.stderr()
    );
    assert_eq!(first.ended().code, Some(5));
}
