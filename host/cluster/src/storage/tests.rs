//! What claims, volumes and attachments say in the API's form.

use serde_json::{Value, json};

use super::super::facts::decoded;
use super::*;

const HOSTNAME: &str = "kubernetes.io/hostname";

fn volume(spec: Value) -> PersistentVolume {
    let object = json!({"metadata": {"name": "pv"}, "spec": spec});
    decoded(&FactKind::PersistentVolume, object)
}

/// With these alternatives of its node affinity.
fn pinned(terms: Value) -> PersistentVolume {
    volume(
        json!({"csi": {"driver": "topolvm.io"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}),
    )
}

fn label(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

#[test]
fn a_claim_says_what_it_wants_and_to_which_volume_it_is_bound() {
    let claim = |value| decoded::<PersistentVolumeClaim>(&FactKind::PersistentVolumeClaim, value);
    let spec = json!({"volumeName": "pv-7", "storageClassName": "fast", "accessModes": ["ReadWriteOnce"]});
    assert_eq!(
        claim(json!({"metadata": {"namespace": "shop", "name": "data"}, "spec": spec})),
        PersistentVolumeClaim {
            namespace: "shop".to_owned(),
            name: "data".to_owned(),
            volume: "pv-7".to_owned(),
            storage_class: "fast".to_owned(),
            access_modes: vec!["ReadWriteOnce".to_owned()],
        }
    );
    let pending = json!({"spec": {"volumeName": null, "storageClassName": null, "accessModes": null}});
    assert_eq!(claim(pending), PersistentVolumeClaim::default());
}

#[test]
fn the_kind_of_a_volume_is_that_of_its_source() {
    let every = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "claimRef": {},
        "csi": {"driver": "ebs.csi.aws.com"}, "mountOptions": [], "nodeAffinity": null, "nfs": null,
        "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "fast",
        "volumeAttributesClassName": "gold", "volumeMode": "Filesystem"});
    assert_eq!(volume(every).kind, "csi");
    assert_eq!(
        volume(json!({"nfs": {"server": "a"}, "capacity": {}})).kind,
        "nfs"
    );
    assert_eq!(volume(json!({"capacity": {}})).kind, "");
    assert_eq!(volume(Value::Null).kind, "");
}

#[test]
fn a_volume_is_local_if_no_other_node_can_use_it() {
    for (terms, is_local) in [
        (json!([]), false),
        (json!([label(HOSTNAME, "In", &["a"])]), true),
        // The value of the label may differ from the node's name.
        (json!([label(HOSTNAME, "In", &["a.example.com"])]), true),
        (json!([label("topology.topolvm.io/node", "In", &["a"])]), true),
        (
            json!([label("topology.kubernetes.io/zone", "In", &["east"])]),
            false,
        ),
        (json!([label(HOSTNAME, "In", &["a", "b"])]), false),
        (json!([label(HOSTNAME, "NotIn", &["b"])]), false),
        (json!([label(HOSTNAME, "Exists", &[])]), false),
        // Alternatives.
        (
            json!([label(HOSTNAME, "In", &["a"]), label(HOSTNAME, "In", &["b"])]),
            false,
        ),
        (
            json!([
                label(HOSTNAME, "In", &["a"]),
                label("topology.topolvm.io/node", "In", &["a"])
            ]),
            true,
        ),
        (
            json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]),
            true,
        ),
        (json!([{}]), false),
    ] {
        assert_eq!(pinned(terms.clone()).is_local_to("a"), is_local, "{terms}");
    }
    assert!(volume(json!({"local": {"path": "/mnt"}})).is_local_to("a"));
    assert!(volume(json!({"hostPath": {"path": "/mnt"}})).is_local_to("a"));
    assert!(!volume(json!({"nfs": {"server": "b"}})).is_local_to("a"));
}

#[test]
fn an_attachment_names_the_volume_and_the_node() {
    let attachment = |value| decoded::<VolumeAttachment>(&FactKind::VolumeAttachment, value);
    let spec =
        json!({"attacher": "ebs.csi.aws.com", "nodeName": "a", "source": {"persistentVolumeName": "pv-7"}});
    assert_eq!(
        attachment(json!({"metadata": {"name": "csi-1"}, "spec": spec})),
        VolumeAttachment {
            volume: "pv-7".to_owned(),
            node: "a".to_owned(),
        }
    );
    // A volume in a pod's own spec, of a driver that was moved to CSI.
    let inline = json!({"spec": {"nodeName": "a", "source": {"inlineVolumeSpec": {}}}});
    assert_eq!(attachment(inline).volume, "");
}
