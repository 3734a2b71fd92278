//! Ctrl-C, SIGTERM, kill -9, and two drains of one node.

use rustix::process::Signal;
use serde_json::json;

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::Rig;

#[test]
fn the_first_signal_reverts_everything_in_order() {
    for signal in [Signal::INT, Signal::TERM] {
        let rig = Rig::new();
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let mut drain = rig.start(&["drain", "worker-1", "worker-2"]);
        drain.prints("evict    shop/stuck");
        assert!(rig.is_cordoned("worker-1"));
        drain.signal(signal);
        let run = drain.ended();
        assert_eq!(run.code, Some(5), "{run:#?}");
        assert!(run.stdout.contains("Cancelled"), "{run:#?}");
        assert!(run.stdout.contains("the node takes pods\n"), "{run:#?}");
        // The second node was not started.
        assert!(
            run.stdout
                .contains("not done: worker-1 (Cancelled), worker-2 (not begun)"),
            "{run:#?}"
        );
        assert!(!rig.is_cordoned("worker-1") && !rig.is_cordoned("worker-2"));
        assert_eq!(rig.mark("worker-1"), None);
    }
}

#[test]
fn a_cordon_that_was_there_before_stays() {
    let rig = Rig::new();
    rig.apply(scupper_simulator::api::objects::node("worker-4").cordoned());
    rig.apply(rig.pod("stuck", "worker-4").stuck());
    let mut drain = rig.start(&["drain", "worker-4"]);
    drain.prints("evict    shop/stuck");
    drain.signal(Signal::INT);
    assert_eq!(drain.ended().code, Some(5));
    assert!(rig.is_cordoned("worker-4"));
}

#[test]
fn the_second_signal_ends_it_at_once_and_another_process_continues() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    // Nothing can be reverted while the API server does not answer.
    rig.api.pause();
    drain.signal(Signal::INT);
    drain.signal(Signal::TERM);
    let run = drain.ended();
    rig.api.resume();
    assert_eq!(run.code, Some(5), "{run:#?}");
    let words = "ended at once; what was changed on the nodes stays, and the same command again continues";
    assert!(run.stderr.contains(words), "{run:#?}");
    is_continued(&rig, &["drain", "worker-1"]);
}

/// A cluster where a drain was killed.
fn killed() -> Rig {
    let rig = Rig::new();
    rig.drain_of_stuck_pod().kill();
    rig
}

#[test]
fn a_killed_drain_is_continued_by_the_same_command() {
    for flags in [&[][..], &["--take-over"]] {
        is_continued(&killed(), &[&["drain", "worker-1"], flags].concat());
    }
}

#[test]
fn an_uncordon_undoes_a_killed_drain_first() {
    let rig = killed();
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stderr.contains("was abandoned, because "), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"), "{run:#?}");
    assert_eq!(
        (rig.mark("worker-1"), rig.pods()),
        (None, vec!["stuck".to_owned()])
    );
}

/// Its process runs, which this machine sees at once.
#[test]
fn a_drain_whose_process_is_alive_is_not_undone() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let busy = "another process works on node worker-1";
    assert!(
        run.stderr.contains(busy) && !run.stderr.contains("--take-over"),
        "{run:#?}"
    );
    // First how to see what it does.
    let next = "; to see it: scupper status worker-1 --watch; to stop it and give the node back: scupper cancel worker-1\n";
    assert!(run.stderr.contains(next), "{run:#?}");
    assert!(!run.stderr.contains("abandoned"), "{run:#?}");
    drain.kill();
}

/// It has the policies, so it finishes what a terminal has left.
#[test]
fn a_driver_takes_over_a_drain_that_a_command_has_abandoned() {
    let rig = killed();
    let _agent = Agent::start(&rig, true);
    let mut drain = rig.start(&asks("drain", &[]));
    drain.prints("wave     1 of 1");
    assert!(drain.stderr().contains("is gone; its driver takes over"));
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    let mark = rig.mark("worker-1").unwrap();
    assert_eq!(
        (&mark["by"], &mark["own_cordon"]),
        (&json!("LifecycleEvent"), &json!(true))
    );
    assert_eq!(rig.run(&asks("uncordon", &[])).code, Some(0));
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn a_driver_gives_back_a_node_that_a_command_has_abandoned() {
    let rig = killed();
    let _agent = Agent::start(&rig, true);
    let run = rig.run(&asks("uncordon", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    let said = "is gone; its driver gives the node back";
    assert!(run.stderr.contains(said), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"), "{run:#?}");
    assert_eq!(
        (rig.mark("worker-1"), rig.pods()),
        (None, vec!["stuck".to_owned()])
    );
}

/// As if its uncordon had been killed.
fn killed_uncordon() -> Rig {
    let rig = killed();
    let mut mark = rig.mark("worker-1").unwrap();
    mark["phase"] = json!("uncordoning");
    mark["intent"] = json!("uncordon");
    let edit = |node: &mut serde_json::Value| {
        node["metadata"]["annotations"]["scupper.dev/drain"] = json!(mark.to_string());
    };
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
    rig
}

#[test]
fn a_killed_uncordon_is_continued_by_the_same_command() {
    let rig = killed_uncordon();
    let next = "next: scupper uncordon worker-1    # continues it";
    let status = rig.run(&["status", "worker-1"]);
    assert!(status.stdout.contains(next), "{status:#?}");
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stderr.contains("is gone; continuing it"), "{run:#?}");
    assert_eq!((rig.is_cordoned("worker-1"), rig.mark("worker-1")), (false, None));
}

/// Its own cordon is lifted, and somebody else has cordoned the node since.
#[test]
fn a_killed_uncordon_lifts_a_later_cordon_only_if_it_may() {
    let rig = killed_uncordon();
    let edit = |node: &mut serde_json::Value| {
        let mark = node["metadata"]["annotations"]["scupper.dev/drain"].as_str();
        let mut mark: serde_json::Value = serde_json::from_str(mark.unwrap()).unwrap();
        mark["own_cordon"] = json!(false);
        node["metadata"]["annotations"]["scupper.dev/drain"] = json!(mark.to_string());
    };
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_eq!(
        (run.code, rig.is_cordoned("worker-1")),
        (Some(5), true),
        "{run:#?}"
    );
    for words in [
        "is gone; the node has been cordoned since",
        "scupper uncordon worker-1 --force",
    ] {
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
    }
    let run = rig.run(&["uncordon", "worker-1", "--force"]);
    assert_eq!(
        (run.code, rig.is_cordoned("worker-1")),
        (Some(0), false),
        "{run:#?}"
    );
    assert_eq!(rig.mark("worker-1"), None);
}

#[test]
fn a_drain_replaces_a_killed_uncordon() {
    for asks_driver in [false, true] {
        let rig = killed_uncordon();
        let _agent = asks_driver.then(|| Agent::start(&rig, true));
        let drain = asks("drain", &[]);
        let args = if asks_driver {
            &drain[..]
        } else {
            &["drain", "worker-1"]
        };
        let mut drain = rig.start(args);
        drain.prints("wave     1 of 1");
        let said = drain.stderr();
        assert!(said.contains("the node instead"), "{said}");
        rig.api.store().delete("pods", "shop", "stuck").unwrap();
        let run = drain.ended();
        assert_eq!(run.code, Some(0), "{run:#?}");
        let mark = rig.mark("worker-1").unwrap();
        assert_eq!(
            (&mark["own_cordon"], &mark["phase"]),
            (&json!(true), &json!("finished"))
        );
        assert!(rig.is_cordoned("worker-1"));
    }
}

/// It ran on another machine: its Lease tells.
#[test]
fn a_drain_of_another_machine_is_continued_once_its_lease_has_expired() {
    let rig = killed();
    rig.leased_to("laptop", 1);
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("command drain-worker-1");
    let said = drain.stderr();
    for words in [
        "laptop drains it, or is gone",
        "was abandoned, because laptop is gone; continuing it",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    drain.kill();
    // One that is renewed meanwhile is not abandoned.
    rig.leased_to("laptop", 300);
    let mut drain = rig.start(&["drain", "worker-1"]);
    until("it waits for the Lease", || {
        drain.stderr().contains("laptop drains it")
    });
    rig.leased_to("laptop", 299);
    drain.prints("queued   behind command drain-worker-1: begins when that ends");
    drain.kill();
}

/// Worker-1 has the checkpoint of a drain whose process is gone.
#[track_caller]
fn is_continued(rig: &Rig, args: &[&str]) {
    let mark = rig.mark("worker-1").unwrap();
    assert_eq!(mark["own_cordon"], json!(true), "{mark}");
    let run = rig.run(&["uncordon", "worker-1", "--take-over"]);
    assert_eq!(run.code, Some(5), "a drain is not an uncordon: {run:#?}");
    assert!(
        run.stderr.contains("another process works on node worker-1"),
        "{run:#?}"
    );
    let mut drain = rig.start(args);
    drain.prints("command drain-worker-1");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.mark("worker-1").unwrap()["id"], mark["id"]);
    assert!(rig.pods().is_empty());
}
