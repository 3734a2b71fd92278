//! The Kubernetes Events of a drain: repetitions are counted, and refused Events delay nothing.

use std::time::{Duration, Instant};

use scupper_simulator::api::{Action, Fault};
use serde_json::{Value, json};

use crate::kubelet_node::until;
use crate::rig::{Rig, Running};

const EVENTS: &str = "events.events.k8s.io";
const PATH: &str = "/apis/events.k8s.io/v1/namespaces/*/events*";

/// As `kubectl cordon` and `kubectl uncordon` do.
fn cordon(rig: &Rig, cordoned: bool) {
    let edit = |node: &mut Value| node["spec"]["unschedulable"] = json!(cordoned);
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
}

/// A drain that waits for a pod, during which another client uncordons and cordons the node.
fn uncordoned(rig: &Rig, drain: &mut Running, times: usize) {
    cordon(rig, false);
    until("the drain sees it", || {
        drain
            .stdout()
            .matches("the node was uncordoned outside Scupper")
            .count()
            == times
    });
    // Not only once the drain has published what its pods wait for now.
    let status = rig.run(&["status", "worker-1"]).stdout;
    let words = [
        "  paused     the node was uncordoned outside Scupper",
        "next: kubectl cordon worker-1",
    ];
    assert!(words.iter().all(|it| status.contains(it)), "{status}");
    let overview = rig.run(&["status"]).stdout;
    assert!(
        overview.contains("paused: uncordoned outside Scupper"),
        "{overview}"
    );
    cordon(rig, true);
}

fn held_up(rig: &Rig) -> Running {
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let mut drain = rig.start(&["drain", "worker-1", "--local"]);
    drain.prints("evict    shop/stuck");
    drain
}

fn reported(rig: &Rig) -> Vec<Value> {
    let events = rig.objects(EVENTS).into_iter();
    events
        .filter(|event| event["reason"] == "UncordonedByOthers")
        .collect()
}

/// Requests for Events, each as its method.
fn asked(rig: &Rig) -> Vec<String> {
    let all = rig.api.requests();
    let events = all.into_iter().filter(|it| it.resource == EVENTS);
    events.map(|it| it.method).collect()
}

#[test]
fn a_recurring_blocker_updates_one_event_with_few_requests() {
    let rig = Rig::new();
    let mut drain = held_up(&rig);
    uncordoned(&rig, &mut drain, 1);
    until("it is reported", || reported(&rig).len() == 1);
    let first = reported(&rig).remove(0);
    assert_eq!(first["series"], Value::Null, "{first}");
    // `kubectl describe node` expects the UID that kubelets write.
    let regarding = json!({"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "worker-1"});
    assert_eq!(first["regarding"], regarding, "{first}");
    uncordoned(&rig, &mut drain, 2);
    until("it is counted up", || reported(&rig)[0]["series"]["count"] == 2);
    // A quick recurrence is reported some minutes later.
    for times in 3..=6 {
        uncordoned(&rig, &mut drain, times);
    }
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(drain.ended().code, Some(0));
    let events = reported(&rig);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0]["metadata"]["name"], first["metadata"]["name"]);
    assert_eq!(events[0]["eventTime"], first["eventTime"]);
    let last = events[0]["series"]["lastObservedTime"].as_str().unwrap();
    assert!(last > first["eventTime"].as_str().unwrap(), "{events:#?}");
    assert_eq!(
        asked(&rig),
        ["POST", "PATCH", "POST"],
        "the last one: how it ended"
    );
}

#[test]
fn an_expired_event_is_recreated() {
    let rig = Rig::new();
    let mut drain = held_up(&rig);
    uncordoned(&rig, &mut drain, 1);
    until("it is reported", || reported(&rig).len() == 1);
    let name = reported(&rig)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    rig.api.store().delete(EVENTS, "default", &name).unwrap();
    uncordoned(&rig, &mut drain, 2);
    until("it is reported again", || reported(&rig).len() == 1);
    assert_ne!(reported(&rig)[0]["metadata"]["name"], json!(name));
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(drain.ended().code, Some(0));
    assert_eq!(asked(&rig), ["POST", "PATCH", "POST", "POST"]);
}

/// Refused, or never answered: the conditions are still written, and the drain ends as soon.
#[test]
fn an_api_server_that_refuses_events_does_not_delay_a_drain() {
    for action in [Action::Hang, Action::Status(403, None)] {
        let rig = Rig::new();
        let fault = Fault::new(action.clone()).path(PATH);
        rig.api.faults([fault]);
        let mut drain = held_up(&rig);
        uncordoned(&rig, &mut drain, 1);
        until("it is tried", || !asked(&rig).is_empty());
        let begun = Instant::now();
        rig.api.store().delete("pods", "shop", "stuck").unwrap();
        until("the node is called drained", || {
            let node = rig.node("worker-1");
            let conditions = node["status"]["conditions"].as_array().unwrap();
            let drained = conditions.iter().find(|it| it["type"] == "Drained");
            drained.is_some_and(|it| it["status"] == "True")
        });
        let run = drain.ended();
        assert_eq!(run.code, Some(0), "{run:#?}");
        // The drain waits five seconds for its last Events.
        assert!(begun.elapsed() < Duration::from_secs(20), "{action:?}: {run:#?}");
        assert!(run.stderr.contains(" Event"), "{action:?}: {run:#?}");
    }
}
