//! A drain of a machine that is off, by the operator's word.

use rustix::process::Signal;
use scupper_simulator::api::{Action, Fault, Forbidden};
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, until};
use crate::rig::Rig;
use crate::undoing::config;

const TAINT: &str = "node.kubernetes.io/out-of-service";
const MARK: &str = "/metadata/annotations/scupper.dev~1out-of-service";
const DRAIN: [&str; 3] = ["drain", "worker-1", "--node-is-off"];

/// With a pod under a budget that allows nothing, which ends after this many seconds.
fn rig(ready: &str, takes: f64) -> Rig {
    let rig = Rig::new();
    set_ready(&rig, ready);
    rig.apply(rig.pod("web", "worker-1").grace(300).takes(takes));
    rig.budget("keep-web", "web");
    rig
}

pub(crate) fn set_ready(rig: &Rig, ready: &str) {
    set_ready_at(rig, ready, "2026-01-01T00:00:00Z");
}

/// With the kubelet's last heartbeat.
fn set_ready_at(rig: &Rig, ready: &str, heartbeat: &str) {
    let condition = json!({"type": "Ready", "status": ready, "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastHeartbeatTime": heartbeat});
    let mut node = rig.node("worker-1");
    node["status"]["conditions"] = json!([condition]);
    rig.apply(node);
}

/// The kubelet of worker-1 renews its Lease.
fn renew(rig: &Rig, renewed: &str) {
    rig.apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-node-lease", "name": "worker-1"},
        "spec": {"holderIdentity": "worker-1", "leaseDurationSeconds": 40, "renewTime": renewed},
    }));
}

const LONG_AGO: &str = "2026-01-01T00:00:00.000000Z";

fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}

/// The drain and its plan are refused with these words, and nothing has changed.
#[track_caller]
fn is_refused(rig: &Rig, words: &[&str]) {
    let mut plan = DRAIN;
    plan[0] = "plan";
    for args in [DRAIN, plan] {
        let run = rig.run(&args);
        assert_ne!(run.code, Some(0), "{run:#?}");
        let said = format!("{}{}", run.stdout, run.stderr);
        for words in words {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!((taints(rig), is_marked(rig)), (vec![], false));
    assert_eq!(rig.pods(), ["web"]);
}

pub(crate) fn taints(rig: &Rig) -> Vec<Value> {
    let node = rig.node("worker-1");
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let meant = taints.into_iter().filter(|taint| taint["key"] == TAINT);
    meant.collect()
}

/// The types of the node's Events of this reason.
fn events(rig: &Rig, reason: &str) -> Vec<String> {
    let events = rig.objects("events.events.k8s.io").into_iter();
    let meant = events.filter(|event| event["reason"] == reason && event["regarding"]["kind"] == "Node");
    meant
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn is_marked(rig: &Rig) -> bool {
    rig.node("worker-1").pointer(MARK).is_some()
}

#[test]
fn a_node_that_is_ready_is_refused_before_anything_changes() {
    let rig = rig("True", 0.1);
    is_refused(
        &rig,
        &["is Ready, so its machine is not off", "without --node-is-off"],
    );
}

/// Only a kubelet writes False: its network plugin or its runtime may be down, and the pods run.
#[test]
fn a_kubelet_that_gives_a_sign_of_life_is_refused_and_the_sign_is_named() {
    let rig = rig("False", 0.1);
    is_refused(
        &rig,
        &["the kubelet of node worker-1 is alive: it reported Ready=False"],
    );
    set_ready(&rig, "Unknown");
    renew(&rig, &now());
    is_refused(
        &rig,
        &["the kubelet of node worker-1 is alive: it renewed its Lease in kube-node-lease"],
    );
    renew(&rig, LONG_AGO);
    set_ready_at(&rig, "Unknown", &now());
    is_refused(
        &rig,
        &["the kubelet of node worker-1 is alive: it posted the status of its node"],
    );
    set_ready(&rig, "Unknown");
    let run = rig.run(&DRAIN);
    assert_eq!(run.code, Some(0), "{run:#?}");
}

#[test]
fn a_lease_that_may_not_be_read_refuses_the_drain_and_says_so() {
    let rig = rig("Unknown", 0.1);
    rig.api.set_forbidden(Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: "get".to_owned(),
        resource: "leases.coordination.k8s.io".to_owned(),
    });
    let run = rig.run(&[&DRAIN[..], &["--forbidden-timeout", "2s"]].concat());
    assert_ne!(run.code, Some(0), "{run:#?}");
    let said = format!("{}{}", run.stdout, run.stderr);
    let words = "whether the kubelet of node worker-1 is silent cannot be told";
    assert!(said.contains(words), "{said}");
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn a_lease_that_is_renewed_ends_a_drain_that_has_begun() {
    let rig = rig("Unknown", 300.0);
    renew(&rig, LONG_AGO);
    let mut drain = rig.start(&DRAIN);
    drain.prints("delete   shop/web");
    // The kubelet's clock is behind: only the change shows that it is alive.
    renew(&rig, "2026-01-01T00:00:10.000000Z");
    let run = drain.ended();
    assert_ne!(run.code, Some(0), "{run:#?}");
    let words = "the kubelet of node worker-1 is alive: it renewed its Lease in kube-node-lease";
    assert!(run.stdout.contains(words), "{run:#?}");
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn without_the_word_a_silent_node_gets_no_taint() {
    let rig = rig("Unknown", 0.1);
    let mut drain = rig.start(&["drain", "worker-1", "--local"]);
    drain.prints("waits    shop/web");
    assert_eq!(taints(&rig), Vec::<Value>::new());
    drain.signal(Signal::INT);
    drain.ended();
}

#[test]
fn a_silent_node_is_tainted_its_pods_are_deleted_and_an_uncordon_takes_the_taint_back() {
    for lease in [None, Some(LONG_AGO)] {
        let rig = rig("Unknown", 0.1);
        if let Some(renewed) = lease {
            renew(&rig, renewed);
        }
        let plan = rig.run(&["plan", "worker-1", "--node-is-off"]);
        let deleted = "delete           shop/web  the machine is off: deleted without asking its disruption budgets [out of service]";
        let tainted =
            "the drain taints the node with node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
        for line in [deleted, tainted] {
            assert!(plan.stdout.contains(line), "{plan:#?}");
        }
        let run = rig.run(&DRAIN);
        assert_eq!(run.code, Some(0), "{run:#?}");
        for line in [
            "the node has the taint node.kubernetes.io/out-of-service",
            "delete   shop/web",
            "end      Drained",
        ] {
            assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
        }
        let cordon = run.stdout.find("cordon   the node is cordoned");
        assert!(cordon < run.stdout.find("has the taint"), "{}", run.stdout);
        assert_eq!(rig.pods(), Vec::<String>::new());
        let taint = json!({"key": TAINT, "value": "nodeshutdown", "effect": "NoExecute"});
        assert_eq!((taints(&rig), is_marked(&rig)), (vec![taint], true));
        assert_eq!(events(&rig, "OutOfService"), ["Warning"]);
        let status = rig.run(&["status", "worker-1"]);
        for line in [
            "finished for command drain-worker-1 with --node-is-off",
            "taint      out of service, by a drain with --node-is-off; scupper uncordon worker-1 removes it",
        ] {
            assert!(status.stdout.contains(line), "{line}: {status:#?}");
        }
        // The kubelet is back, and its node changes.
        let conflict = Fault::new(Action::Status(409, None)).path("/api/v1/nodes/worker-1");
        rig.api.faults([conflict.method("PATCH").skip(1).count(2)]);
        let run = rig.run(&["uncordon", "worker-1", "--local"]);
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(
            run.stdout
                .contains("the taint node.kubernetes.io/out-of-service is removed"),
            "{run:#?}"
        );
        assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
        assert_eq!(events(&rig, "BackInService"), ["Normal"]);
        assert!(!rig.is_cordoned("worker-1"));
    }
}

#[test]
fn an_uncordon_that_is_refused_leaves_the_taint() {
    let rig = rig("Unknown", 0.1);
    let mut node = rig.node("worker-1");
    node["spec"]["unschedulable"] = json!(true);
    rig.apply(node);
    let run = rig.run(&DRAIN);
    assert_eq!(run.code, Some(0), "{run:#?}");
    for args in [
        &["uncordon", "worker-1"][..],
        &["uncordon", "worker-1", "--local"],
    ] {
        let run = rig.run(args);
        assert_ne!(run.code, Some(0), "{run:#?}");
        assert!(run.stderr.contains("nothing has changed"), "{run:#?}");
        assert_eq!((taints(&rig).len(), is_marked(&rig)), (1, true));
    }
    let run = rig.run(&["uncordon", "worker-1", "--force"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
}

#[test]
fn an_uncordon_without_the_policy_that_must_undo_its_part_leaves_the_taint() {
    let rig = rig("Unknown", 0.1);
    let file = config(&rig, &[]);
    let run = rig.run(&[&DRAIN[..], &["--config", &file]].concat());
    assert_eq!(run.code, Some(0), "{run:#?}");
    let uncordon = ["uncordon", "worker-1", "--local"];
    let run = rig.run(&uncordon);
    assert_eq!(run.code, Some(7), "{run:#?}");
    assert!(run.stdout.contains("nothing has changed"), "{run:#?}");
    assert_eq!((taints(&rig).len(), is_marked(&rig)), (1, true));
    let run = rig.run(&[&uncordon[..], &["--config", &file]].concat());
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
}

#[test]
fn the_driver_reports_a_taint_that_is_left_on_a_node_that_is_ready_again() {
    let rig = rig("Unknown", 0.1);
    let run = rig.run(&DRAIN);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let _agent = Agent::start(&rig, false);
    assert_eq!(events(&rig, "StillOutOfService"), [""; 0]);
    set_ready(&rig, "True");
    until("it is reported", || {
        events(&rig, "StillOutOfService") == ["Warning"]
    });
    assert_eq!(taints(&rig).len(), 1, "a driver may write no taint");
    let status = rig.run(&["status", "worker-1"]);
    let line = "; the node is Ready again; scupper uncordon worker-1 removes it";
    assert!(status.stdout.contains(line), "{status:#?}");
}

#[test]
fn a_taint_of_others_is_used_and_left_alone() {
    let rig = rig("Unknown", 0.1);
    let mut node = rig.node("worker-1");
    let theirs = json!({"key": TAINT, "value": "theirs", "effect": "NoExecute"});
    node["spec"]["taints"] = json!([theirs]);
    rig.apply(node);
    let run = rig.run(&DRAIN);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!is_marked(&rig));
    let run = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(taints(&rig), [theirs]);
}

#[test]
fn a_node_that_comes_back_ends_the_drain_and_loses_the_taint() {
    let rig = rig("Unknown", 300.0);
    let mut drain = rig.start(&DRAIN);
    drain.prints("delete   shop/web");
    assert_eq!(taints(&rig).len(), 1);
    set_ready(&rig, "True");
    let run = drain.ended();
    assert_ne!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout.contains("is Ready again, so its machine is not off"),
        "{run:#?}"
    );
    assert_eq!(events(&rig, "BackInService"), ["Normal"]);
    assert_eq!(events(&rig, "Cancelled"), ["Warning"]);
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
    assert!(!rig.is_cordoned("worker-1"));
}

/// A policy may take all the time that the end of a drain has for its hooks.
#[test]
fn a_policy_that_does_not_end_its_hook_does_not_keep_the_taint() {
    let rig = rig("Unknown", 300.0);
    let file = config(&rig, &[("on-cancel", "pending|slurmctld is down|slurm-worker-3")]);
    let mut drain = rig.start(&[&DRAIN[..], &["--config", &file]].concat());
    drain.prints("delete   shop/web");
    assert_eq!(taints(&rig).len(), 1);
    set_ready(&rig, "True");
    let run = drain.ended();
    assert_ne!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("slurmctld is down"), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false), "{run:#?}");
    assert_eq!(events(&rig, "BackInService"), ["Normal"]);
}

#[test]
fn a_cancel_takes_the_taint_back_also_after_a_kill() {
    let rig = rig("Unknown", 300.0);
    let mut drain = rig.start(&DRAIN);
    drain.prints("delete   shop/web");
    drain.kill();
    assert_eq!(taints(&rig).len(), 1);
    // Without the word: it evicts nothing that is not terminating, and knows the taint as its own.
    let drain = rig.start(&["drain", "worker-1", "--take-over"]);
    until("it is taken over", || drain.stdout().contains("plan     "));
    drain.signal(Signal::INT);
    let run = drain.ended();
    assert_ne!(run.code, Some(0), "{run:#?}");
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false), "{run:#?}");
}

#[test]
fn a_drain_that_fails_keeps_the_taint_with_its_cordon() {
    let rig = rig("Unknown", 300.0);
    let run = rig.run(&[&DRAIN[..], &["--timeout", "2s"]].concat());
    assert_ne!(run.code, Some(0), "{run:#?}");
    assert!(rig.is_cordoned("worker-1"));
    assert_eq!(taints(&rig).len(), 1);
    let run = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
}
