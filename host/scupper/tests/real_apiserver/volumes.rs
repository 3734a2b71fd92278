//! A drain that waits for volumes, with the real attach-detach controller. The test plays a volume driver's
//! external-attacher: it reports a volume as attached, and its finalizer holds the attachment until it is detached.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::area::Area;
use super::commands::Killed;
use super::setup::{Config, create, until};
use super::testbed::Testbed;
use super::{pods_on, skip};

const ATTACHER: &str = "csi.example.com";

/// A bound claim with a volume of this kind, and a pod `db` on the node that uses it. The volume's name is that of the
/// namespace.
pub(super) fn pod_with_volume(testbed: &Testbed, node: &str, namespace: &str, kind: &Value) {
    let amount = json!({"storage": "1Gi"});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": amount}, "volumeName": namespace,
            "storageClassName": ""}});
    let claim = create(testbed, &claim);
    let bound = json!({"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "data",
        "uid": claim["metadata"]["uid"]});
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": amount, "claimRef": bound}});
    let spec = volume["spec"].as_object_mut().unwrap();
    spec.extend(kind.as_object().unwrap().clone());
    create(testbed, &volume);
    let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    testbed.patch(
        &format!("{claims}/data/status"),
        &json!({"status": {"phase": "Bound"}}),
    );
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db", "namespace": namespace},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    create(testbed, &pod);
}

/// The controller attaches volumes to the node, as a kubelet asks it to.
pub(super) fn is_attached_to(testbed: &Testbed, node: &str) {
    let notes = json!({"volumes.kubernetes.io/controller-managed-attach-detach": "true"});
    testbed.patch(
        &format!("/api/v1/nodes/{node}"),
        &json!({"metadata": {"annotations": notes}}),
    );
}

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// Of the node.
pub(super) fn attachments(testbed: &Testbed, node: &str) -> Vec<Value> {
    let all = testbed.get(ATTACHMENTS)["items"].as_array().unwrap().clone();
    all.into_iter()
        .filter(|it| it["spec"]["nodeName"] == node)
        .collect()
}

/// Waits until the controller has created the node's only attachment, and returns its path.
pub(super) fn attachment(testbed: &Testbed, node: &str) -> String {
    until("the controller attaches", || {
        attachments(testbed, node).len() == 1
    });
    let name = attachments(testbed, node).remove(0)["metadata"]["name"].clone();
    format!("{ATTACHMENTS}/{}", name.as_str().unwrap())
}

#[test]
fn a_drain_waits_until_the_real_controllers_have_detached_the_volume() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (node, namespace) = (area.node(0), area.namespace("db"));
    is_attached_to(&area, node);
    let kind = json!({"csi": {"driver": ATTACHER, "volumeHandle": "disk-1"}});
    pod_with_volume(&area, node, &namespace, &kind);
    let attachment = attachment(&area, node);
    let finalizer = json!({"metadata": {"finalizers": ["external-attacher/csi-example-com"]}});
    area.patch(&attachment, &finalizer);
    area.patch(
        &format!("{attachment}/status"),
        &json!({"status": {"attached": true}}),
    );
    let volumes = || super::node(&area, node)["status"]["volumesAttached"].to_string();
    until("the node shows it", || volumes().contains("disk-1"));

    let config = Config::with("{wait-for-volumes: {at-most: 10m}}");
    let story = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args(["drain", node, "--local", "--force", "--config", config.path()]);
    command.env("KUBECONFIG", area.kubeconfig()).stdin(Stdio::null());
    let mut drain = Killed(command.stdout(story.reopen().unwrap()).spawn().unwrap());
    let reported = || std::fs::read_to_string(story.path()).unwrap();
    until("the drain waits", || reported().contains("volumes  waits"));
    assert!(
        reported().contains(&format!(
            "1 volume still attached: {namespace} (claim {namespace}/data)"
        )),
        "{}",
        reported()
    );
    assert_eq!(pods_on(&area, node), 0, "{}", reported());
    until("the controller detaches", || {
        !area.get(&attachment)["metadata"]["deletionTimestamp"].is_null()
    });
    assert!(
        drain.0.try_wait().unwrap().is_none(),
        "the driver has not detached it: {}",
        reported()
    );
    area.patch(&attachment, &json!({"metadata": {"finalizers": null}}));
    assert_eq!(drain.0.wait().unwrap().code(), Some(0), "{}", reported());
    assert!(reported().contains("volumes  all are detached"), "{}", reported());
    assert!(attachments(&area, node).is_empty());
}
