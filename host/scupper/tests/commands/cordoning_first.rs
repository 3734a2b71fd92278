//! A drain of several nodes cordons all of them first, and leaves no cordon on one whose drain does not begin.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, DRIVER, asks, until};
use crate::rig::{Rig, Running};
use scupper_simulator::api::objects;

/// Nothing is drained behind the first node.
fn held_at_the_first() -> (Rig, Running) {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    rig.apply(rig.pod("web", "worker-2"));
    rig.apply(rig.pod("other", "worker-3"));
    let mut drain = rig.start(&["drain", "worker-1", "worker-2", "worker-3"]);
    drain.prints("evict    shop/stuck");
    assert_eq!(cordoned(&rig), [true, true, true]);
    (rig, drain)
}

fn cordoned(rig: &Rig) -> [bool; 3] {
    ["worker-1", "worker-2", "worker-3"].map(|node| rig.is_cordoned(node))
}

fn is_ahead(rig: &Rig, node: &str) -> bool {
    rig.mark(node).is_some_and(|mark| mark["ahead"] == true)
}

#[test]
fn all_are_cordoned_before_the_first_pod_leaves_and_each_drain_owns_its_cordon() {
    let (rig, drain) = held_at_the_first();
    let status = rig.run(&["status", "worker-2"]);
    let words = "cordoned by Scupper, ahead of a drain that has not begun";
    assert!(status.stdout.contains(words), "{status:#?}");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    let first: Vec<_> = run.stdout.lines().take(3).collect();
    for (node, line) in ["worker-1", "worker-2", "worker-3"].iter().zip(first) {
        assert!(
            line.starts_with(node) && line.contains("cordon   the node is cordoned, ahead of its drain"),
            "{run:#?}"
        );
    }
    assert_eq!(cordoned(&rig), [true, true, true]);
    for node in ["worker-1", "worker-2", "worker-3"] {
        let mark = rig.mark(node).unwrap();
        assert_eq!(
            (&mark["own_cordon"], &mark["ahead"]),
            (&json!(true), &Value::Null)
        );
    }
}

#[test]
fn a_signal_lifts_them_all() {
    let (rig, drain) = held_at_the_first();
    drain.signal(Signal::INT);
    let run = drain.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert_eq!(cordoned(&rig), [false, false, false]);
    assert_eq!(rig.mark("worker-2"), None);
}

#[test]
fn what_a_killed_command_leaves_is_lifted_by_an_uncordon_or_taken_by_the_next_drain() {
    let (rig, drain) = held_at_the_first();
    drain.kill();
    let run = rig.run(&["uncordon", "worker-2"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(cordoned(&rig), [true, false, true]);
    assert_eq!(rig.mark("worker-2"), None);
    // The next drain that is given up lifts it.
    rig.apply(rig.pod("late", "worker-3").stuck());
    let mut drain = rig.start(&["drain", "worker-3"]);
    drain.prints("evict    shop/late");
    assert!(!is_ahead(&rig, "worker-3"));
    drain.signal(Signal::INT);
    assert_eq!(drain.ended().code, Some(5));
    assert!(!rig.is_cordoned("worker-3"));
}

#[test]
fn one_that_blocks_its_drain_takes_pods_again_and_a_foreign_cordon_stays_foreign() {
    let rig = Rig::new();
    rig.apply(objects::pod("shop", "bare", "worker-2"));
    rig.apply(objects::node("worker-4").cordoned());
    let run = rig.run(&["drain", "worker-1", "worker-2", "worker-4"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains("not done: worker-2 (Blocked)\n"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-2") && rig.is_cordoned("worker-4"));
    assert_eq!(rig.mark("worker-2"), None);
    let own = rig.mark("worker-4").map(|mark| mark["own_cordon"].clone());
    assert_ne!(own, Some(json!(true)));
}

/// Whoever drains learns what the last node needs before the first one is empty, and no node is out of service in vain.
#[test]
fn with_local_a_node_whose_drain_would_be_refused_is_not_cordoned_before_its_turn() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    rig.apply(objects::pod("shop", "bare", "worker-2"));
    let mut drain = rig.start(&["drain", "worker-1", "worker-2", "worker-3", "--local"]);
    drain.prints("evict    shop/stuck");
    assert_eq!(cordoned(&rig), [true, false, true]);
    let refused = "node worker-2 is left as it is until its turn, because its drain cannot begin now. Correct this \
                   before then: ";
    let said = drain.stderr();
    let line = said.lines().find(|line| line.contains(refused));
    assert!(line.is_some_and(|line| line.contains("shop/bare")), "{said}");
    // What stands in the cluster at its turn counts.
    rig.api.store().delete("pods", "shop", "bare").unwrap();
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(cordoned(&rig), [true, true, true]);
    assert_eq!(rig.mark("worker-2").unwrap()["own_cordon"], true);
}

/// By the driver's settings. What a driver does not answer, because it does not run, keeps no node in service.
#[test]
fn a_driver_says_before_the_first_cordon_that_its_drain_could_not_begin() {
    for (flag, obstacle) in [("--force=false", "shop/bare"), ("--force", "allow-overrides")] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, false);
        rig.apply(objects::pod("shop", "bare", "worker-1"));
        let nodes = ["drain", "worker-2", "worker-3", "worker-1"];
        let mut drain = rig.start(&[&nodes[..], &["--driver-name", DRIVER, flag]].concat());
        drain.prints("handed over to the driver");
        assert_eq!(cordoned(&rig), [false, true, true], "{}", drain.stderr());
        let said = drain.stderr();
        let refused = "node worker-1 is left as it is until its turn, because its drain cannot begin now. Correct \
                       this before then: ";
        let line = said.lines().find(|line| line.contains(refused));
        assert!(line.is_some_and(|line| line.contains(obstacle)), "{said}");
        let silent = "node worker-2: its driver did not say within 6s whether the drain can begin; cordoning it with \
                      the others, without that check";
        assert!(said.contains(silent), "{said}");
        for node in ["worker-1", "worker-2", "worker-3"] {
            assert!(rig.node(node)["metadata"]["annotations"]["scupper.dev/plan-check"].is_null());
        }
        drain.kill();
    }
}

/// Its command was killed.
#[test]
fn a_driver_takes_away_an_answer_that_nobody_reads() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    let check = || rig.node("worker-1")["metadata"]["annotations"]["scupper.dev/plan-check"].clone();
    let asked = r#"{"id":"gone","flags":"no JSON"}"#;
    rig.inside(|| {
        rig.api.store().edit("nodes", "", "worker-1", |node| {
            node["metadata"]["annotations"]["scupper.dev/plan-check"] = json!(asked);
        })
    })
    .unwrap();
    until("it is answered", || {
        check()
            .as_str()
            .is_some_and(|text| text.contains("obstacle") && text.contains("scupper.dev/drain-flags"))
    });
    // However often the node changes meanwhile.
    until("it is removed", || {
        let change = |node: &mut Value| {
            let turn = &mut node["metadata"]["labels"]["turn"];
            *turn = json!(if *turn == "on" { "off" } else { "on" });
        };
        rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", change))
            .unwrap();
        check().is_null()
    });
}

#[test]
fn without_it_each_is_cordoned_at_its_turn() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let mut drain = rig.start(&["drain", "worker-1", "worker-2", "--cordon-first=false"]);
    drain.prints("evict    shop/stuck");
    assert_eq!(cordoned(&rig), [true, false, false]);
    drain.kill();
}

/// Only the first one has a driver; the command leaves while that one drains.
#[test]
fn a_drain_by_the_driver_takes_it_and_what_is_not_requested_is_lifted() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let drain = rig.start(&asks("drain", &["worker-2"]));
    until("the driver has made the cordon its own", || {
        rig.is_cordoned("worker-2") && rig.mark("worker-1").is_some_and(|mark| mark["ahead"].is_null())
    });
    assert!(is_ahead(&rig, "worker-2"));
    drain.signal(Signal::INT);
    let run = drain.ended();
    assert!(run.stdout.contains("the driver continues the drain"), "{run:#?}");
    assert_eq!(cordoned(&rig), [true, false, false], "{run:#?}");
    assert_eq!(rig.mark("worker-2"), None);
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    until("the driver has drained its node", || {
        rig.mark("worker-1")
            .is_some_and(|mark| mark["phase"] == "finished")
    });
    assert!(rig.is_cordoned("worker-1"));
}

/// The driver waits for a process that has the node's Lease.
#[test]
fn a_cancel_lifts_it_where_the_drain_that_was_left_to_the_driver_has_not_begun() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, true);
    rig.leased_to("somebody", 3000);
    let mut drain = rig.start(&asks("drain", &["worker-2"]));
    drain.prints("Claimed");
    drain.signal(Signal::INT);
    let run = drain.ended();
    assert!(run.stdout.contains("the driver continues the drain"), "{run:#?}");
    assert!(is_ahead(&rig, "worker-1"), "{run:#?}");
    let run = rig.run(&asks("cancel", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("cancelled: LifecycleEvent"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"), "{run:#?}");
    assert_eq!(rig.mark("worker-1"), None);
}
