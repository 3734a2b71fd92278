//! A person with the rights that `kubectl drain` needs, who may not watch, and has no right to what only Scupper knows of.

use std::time::{Duration, Instant};

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::rig::{Rig, Run};

/// `kubectl drain` gets the node and each DaemonSet by name. The roles that are used for it also grant `list`.
const OF_KUBECTL: &[(&str, &str)] = &[
    ("get", "nodes"),
    ("list", "nodes"),
    ("patch", "nodes"),
    ("get", "pods"),
    ("list", "pods"),
    ("create", "pods/eviction"),
    ("get", "daemonsets.apps"),
    ("list", "daemonsets.apps"),
];

/// A cluster with a pod of `shop`, a pod of a DaemonSet, and this person.
fn cluster(rights: &[(&str, &str)]) -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": "proxy"}, "spec": {},
    }));
    rig.apply(objects::pod("kube-system", "proxy", "worker-1").daemonset("proxy"));
    rig.act_as("sre");
    rig.api.allow_only("sre", rights);
    rig
}

/// Runs it, and says how long it took.
fn timed(rig: &Rig, args: &[&str]) -> (Run, Duration) {
    let begun = Instant::now();
    let run = rig.run(args);
    (run, begun.elapsed())
}

#[test]
fn whoever_may_use_kubectl_drain_can_plan_drain_and_see_the_status() {
    let rig = cluster(OF_KUBECTL);
    let (plan, took) = timed(&rig, &["plan", "worker-1", "--ignore-daemonsets"]);
    assert_eq!(plan.code, Some(0), "{plan:#?}");
    assert!(plan.stdout.contains("shop/web"), "{plan:#?}");
    let unread = "Disruption budgets could not be read.";
    assert!(plan.stdout.contains(unread), "{plan:#?}");
    assert!(
        took < Duration::from_secs(9),
        "a person waits: {took:?} {plan:#?}"
    );
    let json = rig.run(&["plan", "worker-1", "--ignore-daemonsets", "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["budgets"], Value::Null, "{json:#}");
    let (status, took) = timed(&rig, &["status", "worker-1", "-o", "wide"]);
    assert_eq!(status.code, Some(0), "{status:#?}");
    assert!(status.stdout.contains("shop/web"), "{status:#?}");
    let json = rig.run(&["status", "worker-1", "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let unread = json["notRead"].as_array().unwrap();
    let names_budgets = |it: &Value| it.as_str().unwrap().contains("poddisruptionbudgets");
    assert!(unread.iter().any(names_budgets), "{json:#}");
    assert!(
        took < Duration::from_secs(9),
        "a person waits: {took:?} {status:#?}"
    );

    let (drain, took) = timed(&rig, &["drain", "worker-1", "--local", "--ignore-daemonsets"]);
    assert_eq!(drain.code, Some(0), "{drain:#?}");
    assert!(
        drain.stderr.contains("continuing without the node's Lease"),
        "{drain:#?}"
    );
    assert!(
        took < Duration::from_secs(9),
        "a person waits: {took:?} {drain:#?}"
    );
    assert!(!rig.pods().contains(&"web".to_owned()), "{drain:#?}");
    assert!(rig.is_cordoned("worker-1"), "{drain:#?}");
    let uncordon = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(uncordon.code, Some(0), "{uncordon:#?}");
    assert!(!rig.is_cordoned("worker-1"), "{uncordon:#?}");
}

/// A laptop that closes, without the right to see whether a driver is there.
#[test]
fn whoever_may_use_kubectl_drain_can_cancel_a_drain_that_was_left() {
    let rig = cluster(OF_KUBECTL);
    rig.apply(rig.pod("slow", "worker-1").grace(300).stuck());
    let mut drain = rig.start(&["drain", "worker-1", "--local", "--ignore-daemonsets"]);
    drain.prints("evict    shop/slow");
    drain.kill();
    let cancel = rig.run(&["cancel", "worker-1"]);
    assert_eq!(cancel.code, Some(0), "{cancel:#?}");
    let withdrawn = "no LifecycleEvent is withdrawn: no right to list lifecycletransitions";
    assert!(cancel.stderr.contains(withdrawn), "{cancel:#?}");
    assert!(!rig.is_cordoned("worker-1"), "{cancel:#?}");
}

/// The node shows the end. Whether a LifecycleEvent is still there may not be seen, and none was withdrawn.
#[test]
fn whoever_may_use_kubectl_drain_cancels_as_fast_as_an_administrator() {
    let rig = cluster(OF_KUBECTL);
    rig.apply(rig.pod("slow", "worker-1").grace(300).stuck());
    let mut drain = rig.start(&["drain", "worker-1", "--local", "--ignore-daemonsets"]);
    drain.prints("evict    shop/slow");
    // Less than a refused read may take to count elsewhere.
    let cancel = rig.run(&["cancel", "worker-1", "--wait-timeout", "8s"]);
    assert_eq!(cancel.code, Some(0), "{cancel:#?}");
    assert_eq!(drain.ended().code, Some(5));
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn the_right_that_is_missing_is_named_at_once() {
    for (verb, resource) in [("get", "nodes"), ("list", "pods")] {
        let rights: Vec<_> = OF_KUBECTL
            .iter()
            .copied()
            .filter(|it| *it != (verb, resource))
            .collect();
        let rig = cluster(&rights);
        for args in [
            &["plan", "worker-1"][..],
            &["status", "worker-1"],
            &["drain", "worker-1", "--local"],
        ] {
            let (run, took) = timed(&rig, args);
            assert_eq!(run.code, Some(4), "{verb} {resource}: {run:#?}");
            let named = run.stderr.contains("no right to") && run.stderr.contains("ClusterRole");
            assert!(named, "{verb} {resource}: {run:#?}");
            assert!(took < Duration::from_secs(9), "{took:?}: {run:#?}");
            assert!(!rig.is_cordoned("worker-1"), "{run:#?}");
        }
    }
}
