//! A machine that is off, with the real controllers: they call its node NotReady, delete its pods, and collect those that no
//! kubelet ends.

use std::time::{Duration, Instant};

use serde_json::json;

use super::setup::{Config, scupper_with_errors, until};
use super::testbed::Testbed;
use super::volumes::{attachment, attachments, is_attached_to, pod_with_volume};
use super::{ALONE, node, pods_on, skip};

const NODE: &str = "node-0";

fn scupper(testbed: &Testbed, args: &[&str]) -> (Option<i32>, String) {
    let (code, text, errors) = scupper_with_errors(testbed, args);
    (code, text + &errors)
}

fn is_ready(testbed: &Testbed) -> bool {
    let node = node(testbed, NODE);
    let conditions = node["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn is_out_of_service(testbed: &Testbed) -> bool {
    let taints = node(testbed, NODE)["spec"]["taints"].clone();
    let taints = taints.as_array().cloned().unwrap_or_default();
    taints
        .iter()
        .any(|taint| taint["key"] == "node.kubernetes.io/out-of-service")
}

#[test]
fn the_controllers_empty_a_machine_that_is_off_and_detach_its_volume() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    // On a busy machine a kubelet is late: it renews its lease after every quarter of this.
    let testbed = Testbed::bare(&["--nodes", "2", "--node-grace", "24"]);
    is_attached_to(&testbed, NODE);
    let kind = json!({"csi": {"driver": "csi.example.com", "volumeHandle": "disk-1"}});
    pod_with_volume(&testbed, NODE, "default", &kind);
    attachment(&testbed, NODE);
    let pod = "/api/v1/namespaces/default/pods/db";
    until("the pod runs", || {
        testbed.get(pod)["status"]["phase"] == "Running"
    });

    let drain = ["drain", NODE, "--node-is-off", "--force"];
    let (code, text) = scupper(&testbed, &drain);
    assert_ne!(code, Some(0), "{text}");
    assert!(text.contains("is Ready, so its machine is not off"), "{text}");
    assert!(!is_out_of_service(&testbed));

    testbed.kubectl(&["label", "node", NODE, "testbed/kubelet=stopped", "--overwrite"]);
    until("the node is called NotReady", || !is_ready(&testbed));
    // A usual drain cannot end: no kubelet ends the pod.
    let (code, text) = scupper(
        &testbed,
        &["drain", NODE, "--local", "--force", "--timeout", "3s"],
    );
    assert_ne!(code, Some(0), "{text}");
    assert_eq!(pods_on(&testbed, NODE), 1, "{text}");

    let config = Config::with("{wait-for-volumes: {at-most: 10m, otherwise: fail}}");
    let config = ["--config", config.path()];
    scupper(&testbed, &["plan", NODE, "--node-is-off", "--force"]);
    let begun = Instant::now();
    let (code, text) = scupper(&testbed, &[&drain[..], &config].concat());
    assert_eq!(code, Some(0), "{text}");
    // Without the taint the controller waits six minutes for a kubelet to unmount the volume.
    assert!(begun.elapsed() < Duration::from_secs(330), "{text}");
    assert_eq!(pods_on(&testbed, NODE), 0, "{text}");
    assert!(attachments(&testbed, NODE).is_empty(), "{text}");
    assert!(is_out_of_service(&testbed));

    testbed.kubectl(&["label", "node", NODE, "testbed/kubelet=running", "--overwrite"]);
    until("the node is back", || is_ready(&testbed));
    let (code, text) = scupper(&testbed, &["uncordon", NODE, "--local"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!is_out_of_service(&testbed), "{text}");
    assert!(node(&testbed, NODE)["spec"]["unschedulable"].is_null());
}
