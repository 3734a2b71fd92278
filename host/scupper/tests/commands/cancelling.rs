//! A drain is cancelled from a terminal, whoever asked for it.

use rustix::process::Signal;
use serde_json::json;

use crate::handing_over::lines;
use crate::kubelet_node::{Agent, EVENTS, asks, until};
use crate::rig::Rig;

#[test]
fn ctrl_c_detaches_from_the_drivers_drain_and_cancel_reverts_it() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let mut drain = rig.start(&asks("drain", &[]));
        drain.prints("Claimed");
        until("the node is cordoned", || rig.is_cordoned("worker-1"));
        drain.signal(Signal::INT);
        let run = drain.ended();
        assert_eq!(run.code, Some(9), "{run:#?}");
        assert!(run.stdout.contains("scupper cancel worker-1"), "{run:#?}");
        assert_eq!(rig.objects(EVENTS).len(), 1);
        assert!(rig.is_cordoned("worker-1"));
        // A second drain does not start beside it: it follows the first, and tells what has happened so far.
        let mut joined = rig.start(&asks("drain", &[]));
        joined.prints("is under way, with the flags that it began with");
        for words in ["event    Claimed", "1 pod to evict in 1 wave", "wave     1 of 1"] {
            joined.prints(words);
        }
        joined.signal(Signal::INT);
        let run = joined.ended();
        assert_eq!(run.code, Some(9), "{run:#?}");
        assert_eq!(rig.objects(EVENTS).len(), 1);
        let run = rig.run(&asks("cancel", &[]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(
            run.stdout.contains("cancelled: LifecycleEvent drain-worker-1-"),
            "{run:#?}"
        );
        until("the driver has put its cordon back", || {
            !rig.is_cordoned("worker-1")
        });
        assert!(rig.objects(EVENTS).is_empty());
        assert_eq!(rig.mark("worker-1"), None);
        let run = rig.run(&asks("cancel", &[]));
        assert!(run.stdout.contains("no drain is under way"), "{run:#?}");
    }
}

/// Else it would look as if nothing were left to do.
#[test]
fn cancel_after_a_failed_drain_says_that_the_node_is_still_cordoned() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let failed = rig.run(&["drain", "worker-1", "--timeout", "1s"]);
    assert_eq!(failed.code, Some(6), "{failed:#?}");
    let next = "to drain it again: scupper drain worker-1 (add your flags); ";
    assert!(failed.stdout.contains(next), "{failed:#?}");
    let run = rig.run(&["cancel", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let left = "node worker-1: no drain is under way; the node is still cordoned by Scupper; to give it back: scupper uncordon worker-1";
    assert_eq!(run.stdout.trim_end(), left);
    let overview = rig.run(&["status"]);
    assert!(
        overview.stdout.contains("; the node is still cordoned"),
        "{overview:#?}"
    );
}

/// The remaining cordon does not start it again.
#[test]
fn a_drain_that_a_cordon_asked_for_is_cancelled_from_a_terminal() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    rig.drain_by_cordon();
    let evicts = || {
        let requests = rig.api.requests().into_iter();
        requests.filter(|it| it.subresource == "eviction").count()
    };
    until("the pod is asked to leave", || evicts() == 1);
    let run = rig.run(&asks("cancel", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout.contains("cancelled: cordon cordon-worker-1"),
        "{run:#?}"
    );
    assert!(rig.is_cordoned("worker-1"), "it is not ours to lift");
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&asks(
        "drain",
        &["--timeout", "100s", "--pod-selector", "app=none"],
    ));
    assert_eq!(run.code, Some(0), "the next request is carried out: {run:#?}");
    assert_eq!(
        (evicts(), rig.pods()),
        (1, vec!["stuck".to_owned(), "web".to_owned()])
    );
}

#[test]
fn a_drain_from_a_terminal_is_cancelled_from_another() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    let run = rig.run(&["cancel", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout.contains("cancelled: command drain-worker-1"),
        "{run:#?}"
    );
    let run = drain.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains("stopped by scupper cancel"), "{run:#?}");
    let node = rig.node("worker-1");
    assert!(!rig.is_cordoned("worker-1"));
    assert!(
        node["metadata"]["annotations"]["scupper.dev/cancel"].is_null(),
        "{node}"
    );
}

#[test]
fn cancel_of_a_killed_drain_rolls_it_back() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    drain.kill();
    let run = rig.run(&["cancel", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stderr.contains("has rolled the drain back"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(
        (rig.mark("worker-1"), rig.pods()),
        (None, vec!["stuck".to_owned()])
    );
    let node = rig.node("worker-1");
    assert!(
        node["metadata"]["annotations"]["scupper.dev/cancel"].is_null(),
        "{node}"
    );
}

/// Nothing ends the first one in time: its process is said to live elsewhere.
#[test]
fn a_cancel_of_several_nodes_gives_each_of_them_the_whole_time() {
    let rig = Rig::new();
    rig.drain_of_stuck_pod().kill();
    rig.leased_to("somebody", 3000);
    rig.apply(rig.pod("other", "worker-2").stuck());
    let mut second = rig.start(&["drain", "worker-2"]);
    second.prints("evict    shop/other");
    let run = rig.run(&[
        "cancel",
        "worker-1",
        "worker-2",
        "--wait-timeout",
        "3s",
        "--output",
        "json",
    ]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let ends: Vec<_> = lines(&run)
        .iter()
        .map(|line| (line["node"].clone(), line["over"].clone()))
        .collect();
    assert_eq!(
        ends,
        [
            (json!("worker-1"), json!(false)),
            (json!("worker-2"), json!(true))
        ],
        "{run:#?}"
    );
    assert!(second.ended().stdout.contains("stopped by scupper cancel"));
}
