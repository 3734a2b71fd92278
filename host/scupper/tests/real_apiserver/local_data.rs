//! A drain of a node that a real local volume is on.

use serde_json::json;

use super::area::Area;
use super::setup::{events_of, scupper};
use super::volumes::pod_with_volume;
use super::{pods_on, skip};

#[test]
fn a_pod_with_a_local_volume_is_named_and_refused() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (node, namespace) = (area.node(0), area.namespace("db"));
    let host = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}});
    let kind = json!({"local": {"path": "/mnt/disk-1"}, "nodeAffinity": affinity});
    pod_with_volume(&area, node, &namespace, &kind);
    let run = |args: &[&str]| scupper(&area, args);
    let found = format!("only this node can use volume {namespace} of claim data: {namespace}/db");
    let (code, text) = run(&["plan", node, "--force"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&found), "{text}");
    let drain = ["drain", node, "--local", "--force"];
    let (code, text) = run(&[&drain[..], &["--local-data=refuse"]].concat());
    assert_eq!(code, Some(5), "{text}");
    assert_eq!(pods_on(&area, node), 1, "{text}");
    let (code, text) = run(&[&drain[..], &["--local-data=warn"]].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&found), "{text}");
    assert_eq!(pods_on(&area, node), 0, "{text}");
    let events = events_of(&area, "default", node);
    assert!(
        events.iter().any(|event| event["reason"] == "PreFlightFinding"),
        "{events:#?}"
    );
}
