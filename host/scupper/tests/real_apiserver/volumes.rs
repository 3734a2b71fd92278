//! A drain that waits for volumes, with the real attach-detach controller. The test plays a volume driver's
//! external-attacher: it reports a volume as attached, and its finalizer holds the attachment until it is detached.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::commands::Killed;
use super::setup::{Config, apply, merge, until};
use super::testbed::Testbed;
use super::{ALONE, pods_on, skip};

const NODE: &str = "node-0";
const ATTACHER: &str = "csi.example.com";

/// A bound claim with a volume of this kind, and a pod that uses it.
pub(super) fn pod_with_volume(testbed: &Testbed, kind: &Value) {
    let amount = json!({"storage": "1Gi"});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": amount}, "volumeName": "pv-data",
            "storageClassName": ""}});
    apply(testbed, &claim);
    let claim = testbed.kubectl(&["get", "pvc", "data", "-o", "json"]);
    let claim: Value = serde_json::from_str(&claim).unwrap();
    let bound = json!({"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data",
        "uid": claim["metadata"]["uid"]});
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": amount, "claimRef": bound}});
    let spec = volume["spec"].as_object_mut().unwrap();
    spec.extend(kind.as_object().unwrap().clone());
    apply(testbed, &volume);
    let is_bound = json!({"status": {"phase": "Bound"}});
    merge(testbed, &["pvc", "data", "--subresource=status"], &is_bound);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db", "namespace": "default"},
        "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "none"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    apply(testbed, &pod);
}

pub(super) fn attachments(testbed: &Testbed) -> Vec<Value> {
    let listed = testbed.kubectl(&["get", "volumeattachments", "-o", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["items"].as_array().unwrap().clone()
}

#[test]
fn a_drain_waits_until_the_real_controllers_have_detached_the_volume() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    let managed = "volumes.kubernetes.io/controller-managed-attach-detach=true";
    testbed.kubectl(&["annotate", "node", NODE, managed]);
    let kind = json!({"csi": {"driver": ATTACHER, "volumeHandle": "disk-1"}});
    pod_with_volume(&testbed, &kind);
    until("the controller attaches", || attachments(&testbed).len() == 1);
    let attachment = attachments(&testbed).remove(0)["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let finalizer = json!({"metadata": {"finalizers": ["external-attacher/csi-example-com"]}});
    merge(&testbed, &["volumeattachment", &attachment], &finalizer);
    let attached = json!({"status": {"attached": true}});
    merge(
        &testbed,
        &["volumeattachment", &attachment, "--subresource=status"],
        &attached,
    );
    let volumes = || testbed.kubectl(&["get", "node", NODE, "-o", "jsonpath={.status.volumesAttached}"]);
    until("the node shows it", || volumes().contains("disk-1"));

    let config = Config::with("{wait-for-volumes: {at-most: 10m}}");
    let story = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args(["drain", NODE, "--local", "--force", "--config", config.path()]);
    command
        .env("KUBECONFIG", testbed.kubeconfig())
        .stdin(Stdio::null());
    let mut drain = Killed(command.stdout(story.reopen().unwrap()).spawn().unwrap());
    let reported = || std::fs::read_to_string(story.path()).unwrap();
    until("the drain waits", || reported().contains("volumes  waits"));
    assert!(
        reported().contains("1 volume still attached: pv-data (claim default/data)"),
        "{}",
        reported()
    );
    assert_eq!(pods_on(&testbed, NODE), 0, "{}", reported());
    until("the controller detaches", || {
        !attachments(&testbed)[0]["metadata"]["deletionTimestamp"].is_null()
    });
    assert!(
        drain.0.try_wait().unwrap().is_none(),
        "the driver has not detached it: {}",
        reported()
    );
    let done = json!({"metadata": {"finalizers": null}});
    merge(&testbed, &["volumeattachment", &attachment], &done);
    assert_eq!(drain.0.wait().unwrap().code(), Some(0), "{}", reported());
    assert!(reported().contains("volumes  all are detached"), "{}", reported());
    assert!(attachments(&testbed).is_empty());
}
