//! Requests that no driver claims.

use rustix::process::Signal;
use scupper_simulator::api::{Action, Fault};
use serde_json::json;

use crate::kubelet_node::{Agent, EVENTS, asks, until};
use crate::rig::Rig;

/// Only the first one has a driver that claims it.
#[test]
fn any_finished_node_makes_room_for_the_next_delegated_one() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let nodes = ["worker-2", "worker-3", "--parallel", "2", "--claim-timeout", "1s"];
    let drain = rig.start(&asks("drain", &nodes));
    until("the last one is given up beside the first one", || {
        let lines = drain.stdout();
        let mut lines = lines.lines().filter(|line| line.starts_with("worker-3 "));
        lines.any(|line| line.contains("has not claimed it within 1s"))
    });
    assert!(rig.is_cordoned("worker-1"));
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    let ends = run.stdout.lines().last();
    assert_eq!(
        ends,
        Some("not done: worker-2 (no driver took it), worker-3 (no driver took it)"),
        "{run:#?}"
    );
    // They were cordoned first.
    assert!(!rig.is_cordoned("worker-2") && !rig.is_cordoned("worker-3"));
}

#[test]
fn an_event_that_no_driver_claims_is_deleted() {
    let rig = Rig::new();
    let agent = Agent::start(&rig, false);
    let _kubelet = agent.without_driver();
    rig.apply(rig.pod("web", "worker-1"));
    let driver = rig
        .pod("scupper-x7d2p", "worker-1")
        .label("app.kubernetes.io/name", "scupper");
    rig.apply(driver);
    let run = rig.run(&asks("drain", &["--claim-timeout", "5s"]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    for words in [
        "no answer from the driver: its pod shop/scupper-x7d2p is ",
        "has not claimed it within 5s",
        "--local",
        "nothing was begun",
    ] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    rig.api.store().delete("pods", "shop", "scupper-x7d2p").unwrap();
    let run = rig.run(&asks("drain", &["--claim-timeout", "5s"]));
    let words =
        "no answer from the driver: there is no driver's pod on node worker-1; the request is withdrawn in ";
    assert!(run.stdout.contains(words), "{run:#?}");
    assert_eq!(json!(rig.objects(EVENTS)), json!([]));
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["web"]);
}

/// What its policies do first would be left out.
#[test]
fn a_driver_that_is_installed_and_offers_nothing_is_not_passed_over() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let driver = |name, node| rig.pod(name, node).label("app.kubernetes.io/name", "scupper");
    rig.apply(driver("scupper-x7d2p", "worker-1"));
    for command in ["drain", "uncordon"] {
        let run = rig.run(&[command, "worker-1"]);
        assert_eq!(run.code, Some(5), "{run:#?}");
        for words in [
            format!(
                "driver drain.slm.k8s.io publishes no {command} transition for the node; shop/scupper-x7d2p is "
            ),
            format!("without the driver and its policies: scupper {command} worker-1 --local"),
        ] {
            assert!(run.stderr.contains(&words), "{words}: {run:#?}");
        }
    }
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["scupper-x7d2p", "web"]);
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    // Elsewhere it is none of this node's.
    rig.apply(driver("scupper-c4p9w", "worker-2"));
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
}

/// The driver was at another drain when it was killed.
#[test]
fn a_drain_behind_one_that_nobody_carries_out_is_withdrawn() {
    let rig = Rig::new();
    let agent = Agent::start(&rig, false);
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    rig.drain_by_cordon();
    until("it is under way", || rig.mark("worker-1").is_some());
    let queued = "queued   behind cordon cordon-worker-1: begins when that ends";
    let mut late = rig.start(&asks("drain", &["--timeout", "5s"]));
    late.prints(queued);
    let run = late.ended();
    assert_eq!(run.code, Some(6), "{run:#?}");
    let why = "the deadline passed while it waited behind cordon cordon-worker-1";
    assert!(run.stdout.contains(why), "{run:#?}");
    let mut left = rig.start(&asks("drain", &["--claim-timeout", "3s"]));
    left.prints(queued);
    let _kubelet = agent.without_driver();
    let run = left.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    for words in [
        "cordon cordon-worker-1 has no process that carries it out",
        "nothing was begun",
    ] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    assert_eq!(json!(rig.objects(EVENTS)), json!([]));
    // Nobody waits for a process that is gone already. Where that was cannot be seen, its Lease says so.
    for is_elsewhere in [false, true] {
        if is_elsewhere {
            rig.leased_to("scupper/scupper-x7d2p", 300);
        }
        let mut drain = rig.start(&asks("drain", &["--claim-timeout", "1s"]));
        if is_elsewhere {
            drain.prints(queued);
            drain.signal(Signal::INT);
        }
        let run = drain.ended();
        let busy = run
            .stderr
            .contains("node worker-1 has a drain of its driver, which continues it after a restart");
        assert_eq!(busy, !is_elsewhere, "{run:#?}");
    }
    assert_eq!(json!(rig.objects(EVENTS)), json!([]));
    assert_eq!(rig.pods(), ["stuck"]);
}

/// Otherwise a driver that starts hours later would drain the node.
#[test]
fn what_no_driver_claimed_is_withdrawn_also_where_the_api_server_fails_at_first() {
    for (code, is_interrupted) in [(503, false), (403, false), (503, true)] {
        let rig = Rig::new();
        let agent = Agent::start(&rig, false);
        let _kubelet = agent.without_driver();
        let refused = Fault::new(Action::Status(code, None))
            .method("DELETE")
            .path("*/lifecycleevents/*");
        rig.api.faults([refused.count(2)]);
        let within = if is_interrupted { "10m" } else { "1s" };
        let mut drain = rig.start(&asks("drain", &["--claim-timeout", within]));
        drain.prints("handed over to the driver");
        if is_interrupted {
            drain.signal(Signal::INT);
        }
        let run = drain.ended();
        assert_eq!(json!(rig.objects(EVENTS)), json!([]), "{code}: {run:#?}");
        assert_eq!(run.code, Some(5), "{code}: {run:#?}");
        assert!(run.stdout.contains("nothing was begun"), "{code}: {run:#?}");
    }
}
