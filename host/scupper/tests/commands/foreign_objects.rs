//! Another drain's cancel, another node's driver and another LifecycleEvent's end do not affect a drain.

use serde_json::json;

use crate::kubelet_node::{Agent, DRIVER, EVENTS, asks, until};
use crate::rig::Rig;

const VIEW: &str = r#"{"v":1,"drain":"another","at":99999999999999,"wave":["all",1,1],"more":0}"#;

fn annotate(rig: &Rig, key: &str, value: &str) {
    let edit = |node: &mut serde_json::Value| node["metadata"]["annotations"][key] = json!(value);
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
}

#[test]
fn a_cancel_of_another_drain_stops_nothing() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    annotate(&rig, "scupper.dev/cancel", "another");
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("evict    shop/stuck");
    annotate(&rig, "scupper.dev/cancel", "one-more");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
}

#[test]
fn the_status_of_another_drain_is_not_reported_for_this_one() {
    let rig = Rig::new();
    let drain = rig.drain_of_stuck_pod();
    annotate(&rig, "scupper.dev/drain-status", VIEW);
    let run = rig.run(&["status", "worker-1", "--output", "json"]);
    assert!(run.stdout.contains("\"driver\":null"), "{run:#?}");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(drain.ended().code, Some(0));
}

/// A node without a driver is not delegated to the driver of another node.
#[test]
fn a_driver_is_asked_for_its_own_node_alone() {
    let rig = Rig::new();
    let spec = json!({"driver": DRIVER, "start": "s", "end": "e", "nodeName": "worker-1"});
    rig.apply(json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleTransition",
        "metadata": {"name": format!("{DRIVER}.worker-1")}, "spec": spec,
    }));
    rig.apply(rig.pod("web", "worker-2"));
    let both = [
        "drain",
        "worker-1",
        "worker-2",
        "--driver-name",
        DRIVER,
        "--claim-timeout",
        "1s",
    ];
    let run = rig.run(&both);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stderr
            .contains("publishes no drain transition for node worker-2"),
        "{run:#?}"
    );
    assert_eq!(rig.pods(), ["web"]);
    let run = rig.run(&["drain", "worker-2", "--driver-name", DRIVER]);
    assert_eq!(run.code, Some(0), "from here, then: {run:#?}");
    assert_eq!(rig.mark("worker-2").unwrap()["by"], "command");
}

/// Another event of the node has succeeded and is still visible, because of a foreign finalizer.
#[test]
fn another_events_success_is_not_this_ones() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent",
        "metadata": {"name": "drain-worker-1-old", "finalizers": ["example.com/hold"]},
        "spec": {"transitionName": DRIVER, "bindingNode": "worker-1"},
        "status": {"claimStatus": "Succeeded", "driver": "another.example"},
    }));
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let run = rig.run(&asks("drain", &["--timeout", "1s"]));
    assert_eq!(run.code, Some(6), "{run:#?}");
    assert_eq!(rig.pods(), ["stuck"]);
    until("only the other event is there", || rig.objects(EVENTS).len() == 1);
}

/// A pod comes after the plan of a drain that a terminal carries out or that a cordon has asked for: it leaves with the
/// drain that was asked for meanwhile.
#[test]
fn a_drain_begins_when_the_one_that_is_under_way_has_ended() {
    for first in ["command drain-worker-1", "cordon cordon-worker-1"] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, false);
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let local = (first != "cordon cordon-worker-1").then(|| {
            let mut local = rig.start(&asks("drain", &["--local"]));
            local.prints("evict    shop/stuck");
            local
        });
        if local.is_none() {
            rig.drain_by_cordon();
            until("it is under way", || rig.mark("worker-1").is_some());
        }
        let mut drain = rig.start(&asks("drain", &[]));
        drain.prints(&format!("queued   behind {first}: begins when that ends"));
        let run = rig.run(&asks("uncordon", &[]));
        assert_eq!(run.code, Some(5), "{run:#?}");
        let whose = match local {
            Some(_) => "another process works on node worker-1: ",
            None => "node worker-1 has a drain of its driver, which continues it after a restart: ",
        };
        let busy = format!(", for {first}; ");
        assert!(
            run.stderr.contains(whose) && run.stderr.contains(&busy),
            "{run:#?}"
        );
        rig.apply(rig.pod("late", "worker-1"));
        rig.api.store().delete("pods", "shop", "stuck").unwrap();
        if let Some(local) = local {
            assert_eq!(local.ended().code, Some(0));
        }
        let run = drain.ended();
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(rig.pods().is_empty(), "{run:#?}");
        assert!(run.stdout.contains("end      Drained in "), "{run:#?}");
    }
}

#[test]
fn nothing_is_handed_over_beside_another_drivers_drain() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": "theirs"},
        "spec": {"transitionName": "another.example", "bindingNode": "worker-1"},
        "status": {"claimStatus": "Claimed", "driver": "another.example"},
    }));
    let run = rig.run(&asks("drain", &[]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stderr.contains("claimed, for LifecycleEvent theirs"),
        "{run:#?}"
    );
    assert_eq!(rig.objects(EVENTS).len(), 1);
}
