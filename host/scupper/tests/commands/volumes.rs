//! A drain that waits for the node's volumes after its last pod: they are detached late or never, belong to a pod that
//! stays, or the driver may not read them.

use std::path::PathBuf;

use scupper_simulator::api::{Action, Fault, objects};
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Run};

const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";

/// A pod on worker-1 with a volume. `detaches`: how many seconds that takes once the pod is gone, or `never`.
fn rig(detaches: &str) -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1").claim("data-db"));
    attach(&rig, "data-db", detaches);
    rig
}

fn attach(rig: &Rig, claim: &str, detaches: &str) {
    let (volume, attachment) = (format!("pv-{claim}"), format!("csi-{claim}"));
    rig.apply(objects::persistent_volume(&volume, "shop", claim));
    let attached = objects::volume_attachment(&attachment, "worker-1", &volume);
    rig.apply(attached.annotation("testbed/detaches", detaches));
}

fn config(rig: &Rig, wait: &str) -> PathBuf {
    let file = rig.dir.path().join("scupper.yaml");
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    std::fs::write(&file, format!("{head}drain:\n  wait-for-volumes: {wait}\n")).unwrap();
    file
}

fn drain(rig: &Rig, wait: &str) -> Run {
    let file = config(rig, wait);
    rig.run(&["drain", "worker-1", "--local", "--config", file.to_str().unwrap()])
}

/// How often VolumeAttachments were listed and watched.
fn reads(rig: &Rig) -> [usize; 2] {
    let requests = rig.api.requests_since(0);
    let count = |verb: &str| {
        requests
            .iter()
            .filter(|it| it.resource == ATTACHMENTS && it.verb == verb)
            .count()
    };
    ["list", "watch"].map(count)
}

#[test]
fn the_end_waits_for_volumes_that_are_detached_late() {
    let rig = rig("2");
    let run = drain(&rig, "{at-most: 5m}");
    assert_eq!(run.code, Some(0), "{run:#?}");
    for line in [
        "volumes  waits, up to ",
        " more: 1 volume still attached: pv-data-db (claim shop/data-db)",
        "volumes  all are detached",
        "end      Drained in ",
        " for volumes\n",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    assert!(rig.objects(ATTACHMENTS).is_empty());
    assert_eq!(
        reads(&rig),
        [2, 1],
        "a list, a watch, and a list that confirms it"
    );
}

#[test]
fn a_drain_that_was_not_asked_to_does_not_look_at_volumes() {
    let rig = rig("never");
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!run.stdout.contains("volumes"), "{}", run.stdout);
    assert_eq!(reads(&rig), [0, 0]);
}

#[test]
fn when_the_time_is_over_the_end_and_the_condition_name_the_volumes() {
    let rig = rig("never");
    let run = drain(&rig, "{at-most: 1s}");
    assert_eq!(run.code, Some(0), "{run:#?}");
    let left = "1 volume still attached: pv-data-db (claim shop/data-db)";
    for line in [
        format!("volumes  no longer waited for: {left}"),
        format!("volumes  attention: {left}"),
    ] {
        assert!(run.stdout.contains(&line), "{line}: {}", run.stdout);
    }
    let conditions = rig.node("worker-1")["status"]["conditions"].clone();
    let drained = conditions
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["type"] == "Drained");
    let drained = drained.unwrap();
    let message = drained["message"].as_str().unwrap();
    assert!(
        drained["status"] == "True" && message.ends_with(left),
        "{drained}"
    );
    let events = rig.objects("events.events.k8s.io");
    let is_warning = |it: &&Value| it["type"] == "Warning" && it["note"].as_str().unwrap().ends_with(left);
    assert_eq!(events.iter().filter(is_warning).count(), 1, "{events:#?}");
}

#[test]
fn where_the_operator_says_so_the_drain_fails_instead() {
    let rig = rig("never");
    let run = drain(&rig, "{at-most: 1s, otherwise: fail}");
    assert_eq!(run.code, Some(5), "{run:#?}");
    let end = "the volumes of the node were not detached within 1s: \
               1 volume still attached: pv-data-db (claim shop/data-db)";
    assert!(run.stdout.contains(end), "{}", run.stdout);
}

#[test]
fn volumes_of_pods_that_stay_and_of_other_nodes_are_not_waited_for() {
    let rig = rig("0");
    rig.apply(
        objects::pod("shop", "agent-worker-1", "worker-1")
            .daemonset("agent")
            .claim("cache"),
    );
    // After its pod, or it would create one of this name, without the claim.
    rig.apply(objects::daemon_set("shop", "agent"));
    attach(&rig, "cache", "never");
    rig.apply(
        objects::volume_attachment("csi-other", "worker-2", "pv-other")
            .annotation("testbed/detaches", "never"),
    );
    let file = config(&rig, "{at-most: 5m}");
    let run = rig.run(&[
        "drain",
        "worker-1",
        "--local",
        "--ignore-daemonsets",
        "--config",
        file.to_str().unwrap(),
    ]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!run.stdout.contains("attention"), "{}", run.stdout);
    assert_eq!(rig.objects(ATTACHMENTS).len(), 2);
}

#[test]
fn volumes_that_may_not_be_read_do_not_count_as_detached() {
    let rig = rig("0");
    let refused = Fault::new(Action::Status(403, None)).path("/apis/storage.k8s.io/v1/volumeattachments");
    rig.api.faults([refused]);
    let run = drain(&rig, "{at-most: 2s}");
    assert_eq!(run.code, Some(0), "{run:#?}");
    let unknown = "attention: cannot read VolumeAttachments: ";
    assert!(run.stdout.contains(unknown), "{}", run.stdout);
}

#[test]
fn the_plan_shows_the_wait() {
    let rig = rig("never");
    let file = config(&rig, "{at-most: 90s}");
    let args = ["plan", "worker-1", "--config", file.to_str().unwrap()];
    let run = rig.run(&args);
    let lines = "after the last pod: waits at most 1m30s until the node's volumes are detached, then ends as Drained and \
                 names those that are still attached\n  claims of the pods that leave: shop/data-db\n";
    assert!(run.stdout.contains(lines), "{}", run.stdout);
    let run = rig.run(&[&args[..], &["--output", "json"]].concat());
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let wait = json!({"atMostSeconds": 90.0, "otherwise": "warn", "claims": ["shop/data-db"]});
    assert_eq!(plan["waitForVolumes"], wait);
}

#[test]
fn a_driver_publishes_what_it_waits_for_and_the_next_one_goes_on_waiting() {
    let rig = rig("never");
    let file = config(&rig, "{at-most: 10m}");
    let flags = ["--config", file.to_str().unwrap()];
    let agent = Agent::with(&rig, false, &flags);
    let mut follower = rig.start(&asks("drain", &[]));
    follower.prints("volumes  waits");
    let status = || {
        let run = rig.run(&["status", "worker-1"]);
        run.stdout.contains("  volumes    waits").then_some(run.stdout)
    };
    until("the status names the volumes", || status().is_some());
    let shown = status().unwrap();
    assert!(
        shown.contains("next: kubectl describe volumeattachment csi-data-db"),
        "{shown}"
    );
    let since = || {
        rig.mark("worker-1")
            .and_then(|mark| mark["volumes_since"].as_u64())
    };
    let begun = since();
    assert!(begun.is_some());
    let _kubelet = agent.without_driver();
    let _agent = Agent::with(&rig, false, &flags);
    let edit = || {
        rig.api
            .store()
            .edit("volumeattachments.storage.k8s.io", "", "csi-data-db", |it| {
                it["metadata"]["annotations"]["testbed/detaches"] = json!("0");
            })
    };
    until("the next driver waits", || since() == begun && status().is_some());
    rig.inside(edit).unwrap();
    let run = follower.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(rig.objects(ATTACHMENTS).is_empty());
}
