//! Drains whose driver is gone for good: a command continues them, for every trigger, or undoes them.

use rustix::process::Signal;
use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::guests::guest;
use crate::kubelet_node::{Agent, DRIVER, EVENTS, asks, until};
use crate::node_is_off::set_ready;
use crate::rig::{Rig, Run};

const LEASES: &str = "leases.coordination.k8s.io";

/// A driver has begun to drain worker-1 for this trigger, a budget holds the pod, and then the driver is gone.
fn abandoned(trigger: &str) -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").grace(300).takes(0.1));
    rig.budget("keep-web", "web");
    let agent = Agent::start(&rig, false);
    match trigger {
        "cordon" => rig.drain_by_cordon(),
        _ => {
            let mut drain = rig.start(&asks("drain", &[]));
            drain.prints("Claimed");
            drain.kill();
        }
    }
    until("the drain waits for the budget", || {
        rig.mark("worker-1")
            .is_some_and(|mark| mark["phase"] == "holding")
            && evictions(&rig) > 0
    });
    agent.driver.kill();
    if trigger == "DrainRequest" {
        mark_as(&rig, "DrainRequest");
    }
    rig
}

/// A command finishes what another process has begun: the budget goes meanwhile.
#[track_caller]
fn take_over(rig: &Rig) {
    let mut drain = rig.start(&["drain", "worker-1", "--take-over"]);
    drain.prints("waits    shop/web");
    lift_budget(rig);
    is_done(&drain.ended());
}

pub(crate) fn lift_budget(rig: &Rig) {
    let store = rig.api.store();
    store
        .delete("poddisruptionbudgets.policy", "shop", "keep-web")
        .unwrap();
}

fn evictions(rig: &Rig) -> usize {
    let requests = rig.api.requests().into_iter();
    requests.filter(|it| it.subresource == "eviction").count()
}

fn edit(rig: &Rig, change: impl Fn(&mut Value)) {
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", |node| change(node)))
        .unwrap();
}

/// As if the drain had been for another trigger.
fn mark_as(rig: &Rig, trigger: &str) {
    let mut mark = rig.mark("worker-1").unwrap();
    mark["by"] = json!(trigger);
    edit(rig, |node| {
        node["metadata"]["annotations"]["scupper.dev/drain"] = json!(mark.to_string());
    });
}

/// As if the drain had been cancelled, and its process had ended while it rolled back.
pub(crate) fn rolls_back(rig: &Rig) {
    let mut mark = rig.mark("worker-1").unwrap();
    mark["phase"] = json!("rolling back");
    mark["cancelled"] = json!("withdrawn");
    edit(rig, |node| {
        node["metadata"]["annotations"]["scupper.dev/drain"] = json!(mark.to_string());
    });
}

/// The driver ran on another machine than this command, and its Lease is valid for so long.
pub(crate) fn held_elsewhere(rig: &Rig, seconds: u32) {
    rig.leased_to("scupper/scupper-x7d2p", seconds);
}

#[track_caller]
fn is_done(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:#?}");
}

#[test]
fn a_machine_that_is_off_is_drained_whatever_its_driver_was_doing() {
    for trigger in ["LifecycleEvent", "DrainRequest", "cordon"] {
        let rig = abandoned(trigger);
        let before = rig.mark("worker-1").unwrap();
        assert_eq!(before["by"], trigger);
        held_elsewhere(&rig, 1);
        set_ready(&rig, "Unknown");
        let plan = rig.run(&["plan", "worker-1", "--node-is-off"]);
        is_done(&plan);
        let continues = format!("It continues the drain for {trigger} ");
        assert!(plan.stdout.contains(&continues), "{plan:#?}");
        let run = rig.run(&["drain", "worker-1", "--node-is-off"]);
        is_done(&run);
        assert!(rig.pods().is_empty(), "{run:#?}");
        assert!(rig.is_cordoned("worker-1"), "{trigger}");
        let mark = rig.mark("worker-1");
        if before["own_cordon"] != true {
            assert_eq!(mark, None, "the mark stays only with a cordon of ours");
            continue;
        }
        let mark = mark.unwrap();
        assert_eq!(mark["id"], before["id"], "{trigger}");
        assert_eq!(mark["own_cordon"], true, "{trigger}");
        assert_eq!(mark["phase"], "finished", "{trigger}");
    }
}

/// `plan` and `drain` say the same, and the drain stays as it is.
#[test]
fn a_driver_whose_kubelet_is_alive_keeps_its_drain_from_a_machine_that_is_said_to_be_off() {
    let rig = abandoned("LifecycleEvent");
    let before = rig.mark("worker-1");
    set_ready(&rig, "False");
    for command in ["plan", "drain"] {
        let run = rig.run(&[command, "worker-1", "--node-is-off"]);
        assert_eq!(run.code, Some(7), "{run:#?}");
        let said = format!("{}{}", run.stdout, run.stderr);
        let sign = "the kubelet of node worker-1 is alive: it reported Ready=False";
        assert!(said.contains(sign), "{said}");
    }
    assert_eq!(rig.mark("worker-1"), before);
}

/// Its roll-back would end with a node that takes pods.
#[test]
fn a_machine_that_is_off_is_drained_although_its_driver_was_rolling_back() {
    let rig = abandoned("LifecycleEvent");
    rolls_back(&rig);
    set_ready(&rig, "Unknown");
    let run = rig.run(&["drain", "worker-1", "--node-is-off"]);
    is_done(&run);
    assert!(rig.pods().is_empty() && rig.is_cordoned("worker-1"));
    assert_eq!(rig.mark("worker-1").unwrap()["own_cordon"], true);
}

#[test]
fn a_drain_whose_driver_is_gone_for_good_is_continued_only_if_asked() {
    let rig = abandoned("LifecycleEvent");
    let before = rig.mark("worker-1").unwrap();
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let advice = "if its driver is gone for good, continue its drain: scupper drain worker-1 --take-over";
    assert!(run.stderr.contains(advice), "{run:#?}");
    held_elsewhere(&rig, 1);
    take_over(&rig);
    let mark = rig.mark("worker-1").unwrap();
    assert_eq!((&mark["id"], &mark["own_cordon"]), (&before["id"], &json!(true)));
}

/// Else nothing moves, and the terminal does not say why.
#[test]
fn who_follows_a_drain_learns_that_its_driver_is_gone_and_that_it_is_back() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").grace(300).takes(0.1));
    rig.budget("keep-web", "web");
    let agent = Agent::start(&rig, false);
    let drain = rig.start(&asks("drain", &[]));
    until("the drain waits for the budget", || evictions(&rig) > 0);
    assert!(!drain.stderr().contains("is not running"), "{}", drain.stderr());
    agent.driver.kill();
    held_elsewhere(&rig, 1);
    until("it is said", || {
        drain
            .stderr()
            .contains("its driver is not running, so the drain stands still")
    });
    let left = rig.start(&asks("drain", &[]));
    until("it is said to whoever joins", || {
        left.stderr().contains("its driver is not running")
    });
    left.signal(Signal::INT);
    let left = left.ended();
    assert_eq!(left.code, Some(9), "{left:#?}");
    let goes_on = "its driver is not running; the drain continues when the driver is back";
    assert!(left.stdout.contains(goes_on), "{left:#?}");
    let _agent = Agent::start(&rig, false);
    until("it is back", || drain.stderr().contains("its driver is back"));
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-web")
        .unwrap();
    is_done(&drain.ended());
}

/// No drain is under way any more that could be waited for, or rolled back.
#[test]
fn an_event_that_only_waits_for_its_dead_driver_is_called_so() {
    let rig = abandoned("LifecycleEvent");
    held_elsewhere(&rig, 1);
    take_over(&rig);
    let run = rig.run(&[
        "--log=info",
        "cancel",
        "worker-1",
        "--driver-name",
        DRIVER,
        "--wait-timeout",
        "4s",
    ]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    for words in [
        "waiting for LifecycleEvent drain-worker-1-",
        "no drain is under way, and its driver has not released LifecycleEvent drain-worker-1-",
    ] {
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
    }
    let status = rig.run(&["status", "worker-1"]);
    let next = "if it is gone for good: kubectl patch lifecycleevent drain-worker-1-";
    assert!(status.stdout.contains("Claimed, being deleted"), "{status:#?}");
    assert!(status.stdout.contains(next), "{status:#?}");
    let _agent = Agent::start(&rig, false);
    until("the driver lets go of it", || rig.objects(EVENTS).is_empty());
}

/// The driver would drain the node again once it is back.
#[test]
fn a_drain_that_was_taken_over_and_called_off_does_not_begin_again() {
    let rig = abandoned("LifecycleEvent");
    // Also if the command that has taken it over was killed, and a second one goes on.
    for is_last in [false, true] {
        held_elsewhere(&rig, 1);
        let mut drain = rig.start(&["drain", "worker-1", "--take-over"]);
        drain.prints("waits    shop/web");
        if !is_last {
            drain.kill();
            mark_as(&rig, "command");
            continue;
        }
        drain.signal(Signal::INT);
        is_withdrawn(&drain.ended());
    }
    let evicted = evictions(&rig);
    let _agent = Agent::start(&rig, false);
    until("the driver has ended the event", || {
        let events = rig.api.store().list(EVENTS);
        events
            .iter()
            .all(|event| event["status"]["claimStatus"] != "Claimed")
    });
    assert_eq!((rig.pods(), evictions(&rig)), (vec!["web".to_owned()], evicted));
    assert!(!rig.is_cordoned("worker-1"));
}

#[track_caller]
fn is_withdrawn(run: &Run) {
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stderr
            .contains("is withdrawn, so that its driver does not drain the node again"),
        "{run:#?}"
    );
}

/// With fewer flags it would wait for ever for pods that may not leave without them.
#[test]
fn a_drain_is_not_continued_with_fewer_flags_than_its_pods_need() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").grace(300).takes(0.1));
    rig.budget("keep-web", "web");
    rig.apply(objects::pod("kube-system", "proxy", "worker-1").daemonset("proxy"));
    rig.apply(objects::daemon_set("kube-system", "proxy"));
    let continues = ["drain", "worker-1", "--local", "--ignore-daemonsets"];
    let mut drain = rig.start(&continues);
    drain.prints("waits    shop/web");
    drain.kill();
    let before = rig.mark("worker-1");
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let says = "the drain of node worker-1 cannot be continued without --ignore-daemonsets: kube-system/proxy may not leave";
    assert!(run.stderr.contains(says), "{run:#?}");
    assert_eq!(rig.mark("worker-1"), before);
    let is_there = |name: &str| rig.pods().iter().any(|pod| pod == name);
    assert!(is_there("proxy") && is_there("web"), "{:?}", rig.pods());
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-web")
        .unwrap();
    is_done(&rig.run(&continues));
}

/// The requester has chosen the pods: without the flag all of them would leave.
/// Pods that a policy holds back would leave at once.
#[test]
fn a_drain_is_not_continued_without_the_policies_that_planned_it() {
    let rig = Rig::new();
    for name in ["db", "web"] {
        rig.apply(rig.pod(name, "worker-1").grace(300));
        rig.budget(&format!("keep-{name}"), name);
    }
    let file = rig.dir.path().join("waves.yaml");
    let policy = format!(
        "policies: [{{name: waves, module: {}}}]",
        guest("waves").display()
    );
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\n";
    std::fs::write(&file, format!("{head}{policy}\n")).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let agent = Agent::with(&rig, false, &config);
    let mut drain = rig.start(&asks("drain", &[]));
    drain.prints("Claimed");
    // Nobody follows it, so its driver publishes no plan.
    drain.kill();
    until("it asks for an eviction", || evictions(&rig) > 0);
    agent.driver.kill();
    held_elsewhere(&rig, 1);
    let before = evictions(&rig);
    let run = rig.run(&["drain", "worker-1", "--take-over"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let why = "was planned by policies that are not active here: waves";
    assert!(run.stderr.contains(why), "{run:#?}");
    assert_eq!(evictions(&rig), before);
    let mut drain = rig.start(&[&["drain", "worker-1", "--take-over"], &config[..]].concat());
    drain.prints("waits    shop/");
    drain.signal(Signal::INT);
    drain.ended();
}

/// It would be a drain past the node's driver, and past what its policies do first.
#[test]
fn where_no_drain_is_under_way_there_is_nothing_to_take_over() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let _agent = Agent::start(&rig, false);
    let run = rig.run(&asks("drain", &["--take-over"]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    let why = "no drain is under way that --take-over could continue";
    assert!(run.stderr.contains(why), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["web"]);
}

#[test]
fn a_drain_of_some_pods_is_not_continued_for_all_of_them() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").grace(300).takes(0.1));
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-web", "web");
    let agent = Agent::start(&rig, false);
    let mut drain = rig.start(&asks("drain", &["--pod-selector", "app=web"]));
    drain.prints("Claimed");
    drain.kill();
    until("the drain waits for the budget", || evictions(&rig) > 0);
    agent.driver.kill();
    held_elsewhere(&rig, 1);
    let before = rig.mark("worker-1");
    let run = rig.run(&["drain", "worker-1", "--take-over"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    let says = "scupper drain worker-1 --take-over --pod-selector=app=web";
    assert!(run.stderr.contains(says), "{run:#?}");
    assert_eq!(rig.mark("worker-1"), before);
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-web")
        .unwrap();
    is_done(&rig.run(&["drain", "worker-1", "--take-over", "--pod-selector=app=web"]));
    assert_eq!(rig.pods(), ["db"]);
}

/// It may be of some pods only: a command would evict the others as well.
#[test]
fn a_drain_for_a_request_is_not_continued_by_a_command() {
    let rig = abandoned("DrainRequest");
    rig.apply(rig.pod("training", "worker-1"));
    held_elsewhere(&rig, 1);
    let before = (rig.mark("worker-1"), evictions(&rig));
    let run = rig.run(&["drain", "worker-1", "--take-over"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stderr.contains("a driver alone can continue that"),
        "{run:#?}"
    );
    assert_eq!((rig.mark("worker-1"), evictions(&rig)), before);
}

#[test]
fn a_cancel_rolls_a_drain_back_whose_driver_is_gone() {
    for trigger in ["LifecycleEvent", "DrainRequest", "cordon"] {
        let rig = abandoned(trigger);
        held_elsewhere(&rig, 1);
        let run = rig.run(&asks("cancel", &[]));
        is_done(&run);
        assert!(
            run.stderr
                .contains("the process that drained it is gone, so this command has rolled the drain back"),
            "{run:#?}"
        );
        assert_eq!(rig.mark("worker-1"), None, "{trigger}");
        assert_eq!(rig.is_cordoned("worker-1"), trigger == "cordon");
        assert_eq!(rig.pods(), ["web"]);
        let node = rig.node("worker-1");
        assert!(
            node["metadata"]["annotations"]["scupper.dev/cancel"].is_null(),
            "{node}"
        );
        assert!(rig.objects(LEASES).is_empty());
        if trigger == "LifecycleEvent" {
            let deleting = |event: &Value| !event["metadata"]["deletionTimestamp"].is_null();
            assert!(rig.objects(EVENTS).iter().all(deleting));
        }
    }
}

/// A process that renews its Lease is not gone.
#[test]
fn a_cancel_leaves_a_drain_to_a_process_that_holds_the_lease() {
    let rig = abandoned("cordon");
    held_elsewhere(&rig, 300);
    let before = rig.mark("worker-1");
    let run = rig.run(&asks("cancel", &["--wait-timeout", "3s"]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stderr.contains("scupper status worker-1"), "{run:#?}");
    assert_eq!(rig.mark("worker-1"), before);
}

/// What a policy has changed outside must not be forgotten with the mark.
#[test]
fn a_cancel_does_not_roll_back_what_only_a_policy_that_is_not_loaded_can_undo() {
    let rig = abandoned("LifecycleEvent");
    let mut mark = rig.mark("worker-1").unwrap();
    mark["to_undo"] = json!(["slurm"]);
    edit(&rig, |node| {
        node["metadata"]["annotations"]["scupper.dev/drain"] = json!(mark.to_string());
    });
    held_elsewhere(&rig, 1);
    let run = rig.run(&asks("cancel", &[]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stderr
            .contains("policies that took part are not active here: slurm")
            && run.stderr.contains("scupper cancel worker-1 --config"),
        "{run:#?}"
    );
    assert_eq!(rig.mark("worker-1").unwrap()["to_undo"], json!(["slurm"]));
    assert!(rig.is_cordoned("worker-1"));
}

/// The replica is taken back by the process that continues the drain, and by the one that rolls it back.
#[test]
fn a_replica_that_a_driver_raised_is_taken_back_by_the_command_that_takes_over() {
    for command in [
        &["drain", "worker-1", "--node-is-off"][..],
        &["cancel", "worker-1"],
    ] {
        let rig = abandoned("LifecycleEvent");
        let id = rig.mark("worker-1").unwrap()["id"].clone();
        rig.apply(
            objects::deployment("shop", "web", 2)
                .annotation("scupper.dev/surge", id.as_str().unwrap())
                .annotation("scupper.dev/raised-from", "1"),
        );
        let deployments = rig.objects("deployments.apps");
        let web = deployments.first().unwrap();
        let mut mark = rig.mark("worker-1").unwrap();
        mark["raised"] =
            json!([{"namespace": "shop", "name": "web", "uid": web["metadata"]["uid"], "drain": id}]);
        edit(&rig, |node| {
            node["metadata"]["annotations"]["scupper.dev/drain"] = json!(mark.to_string());
        });
        set_ready(&rig, "Unknown");
        held_elsewhere(&rig, 1);
        is_done(&rig.run(command));
        let web = rig.objects("deployments.apps").pop().unwrap();
        assert_eq!(web["spec"]["replicas"], 1, "{command:?}: {web:#}");
    }
}
