//! The pair of conditions of a node at each step of a drain from the command line, local or delegated.

use serde_json::json;

use crate::kubelet_node::{Agent, asks, until};
use crate::pairs::Pairs;
use crate::rig::{Rig, Running};

fn watch(rig: &Rig) -> Pairs {
    let client = rig.inside(|| kube::Client::try_from(rig.api.client_config()).unwrap());
    rig.inside(|| Pairs::watch(client, "worker-1"))
}

#[track_caller]
fn becomes(pairs: &Pairs, last: &str) {
    until(last, || pairs.last() == last);
}

/// As `kubectl uncordon` does.
fn uncordon(rig: &Rig) {
    let edit = || {
        let store = rig.api.store();
        store.edit("nodes", "", "worker-1", |node| {
            node["spec"]["unschedulable"] = json!(false)
        })
    };
    rig.inside(edit).unwrap();
}

/// A drain from a terminal that is blocked, and the conditions since before it.
fn held_up(rig: &Rig) -> (Running, Pairs) {
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let pairs = watch(rig);
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("evict    shop/stuck");
    becomes(&pairs, "True/False DrainStarted");
    (drain, pairs)
}

/// A successful drain, a late one and a cancelled one, and the conditions after an uncordon of each.
#[test]
fn the_conditions_stay_a_pair_and_disappear_with_any_uncordon() {
    for flag in [None, Some("--local")] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, false);
        let pairs = watch(&rig);
        let drain = |more: &[&str]| {
            let flags: Vec<&str> = flag.into_iter().chain(more.iter().copied()).collect();
            rig.run(&asks("drain", &flags)).code
        };
        rig.apply(rig.pod("web", "worker-1"));
        assert_eq!(drain(&[]), Some(0));
        becomes(&pairs, "False/True DrainCompleted");
        assert_eq!(rig.run(&asks("uncordon", &[])).code, Some(0));
        becomes(&pairs, "False/False MaintenanceComplete");
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        assert_eq!(drain(&["--timeout", "4s"]), Some(6));
        becomes(&pairs, "False/False DrainDeadlineExceeded");
        let flags: Vec<&str> = flag.into_iter().collect();
        let run = rig.start(&asks("drain", &flags));
        becomes(&pairs, "True/False DrainStarted");
        assert_eq!(rig.run(&asks("cancel", &[])).code, Some(0));
        assert_eq!(run.ended().code, Some(5));
        becomes(&pairs, "False/False DrainCancelled");
        rig.api.store().delete("pods", "shop", "stuck").unwrap();
        assert_eq!(drain(&[]), Some(0));
        becomes(&pairs, "False/True DrainCompleted");
        uncordon(&rig);
        becomes(&pairs, "False/False Uncordoned");
        let expected = [
            "True/False DrainStarted",
            "False/True DrainCompleted",
            "False/False MaintenanceComplete",
            "True/False DrainStarted",
            "False/False DrainDeadlineExceeded",
            "True/False DrainStarted",
            "False/False DrainCancelled",
            "True/False DrainStarted",
            "False/True DrainCompleted",
            "False/False Uncordoned",
        ];
        assert_eq!(pairs.story(), expected, "{flag:?}");
    }
}

/// A refused drain has started nothing, so it sets no condition.
#[test]
fn a_drain_that_is_refused_changes_none_of_them() {
    let rig = Rig::new();
    let pairs = watch(&rig);
    rig.apply(scupper_simulator::api::objects::pod("shop", "bare", "worker-1"));
    assert_eq!(rig.run(&["drain", "worker-1"]).code, Some(5));
    assert_eq!(rig.run(&["drain", "worker-1", "--force"]).code, Some(0));
    becomes(&pairs, "False/True DrainCompleted");
    assert_eq!(
        pairs.story(),
        ["True/False DrainStarted", "False/True DrainCompleted"]
    );
}

/// No other process would ever report that a drain whose terminal was killed is no longer in progress.
#[test]
fn a_driver_reverts_a_killed_terminals_changes_but_not_a_live_ones() {
    let rig = Rig::new();
    let (drain, pairs) = held_up(&rig);
    let _agent = Agent::start(&rig, false);
    let looks = || {
        let requests = rig.api.requests().into_iter();
        requests
            .filter(|it| it.method == "GET" && it.path.ends_with("/leases/worker-1"))
            .count()
    };
    until("the driver has looked twice", || looks() > 1);
    assert_eq!(
        pairs.last(),
        "True/False DrainStarted",
        "the process that drains is alive"
    );
    drain.kill();
    becomes(&pairs, "False/False DrainAbandoned");
    let next = rig.start(&["drain", "worker-1", "--take-over"]);
    becomes(&pairs, "True/False DrainStarted");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(next.ended().code, Some(0));
    becomes(&pairs, "False/True DrainCompleted");
}

#[test]
fn cleanup_removes_what_no_process_will_continue() {
    let rig = Rig::new();
    let (drain, pairs) = held_up(&rig);
    drain.kill();
    let run = rig.run(&["cleanup", "--node-name", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout.contains("DrainInProgress of node worker-1"),
        "{run:#?}"
    );
    assert_eq!(rig.mark("worker-1"), None);
    becomes(&pairs, "False/False DrainAbandoned");
}
