//! A drain of a node that a real local volume is on.

use serde_json::json;

use super::setup::scupper;
use super::testbed::Testbed;
use super::volumes::pod_with_volume;
use super::{ALONE, pods_on, skip};

const NODE: &str = "node-0";

#[test]
fn a_pod_with_a_local_volume_is_named_and_refused() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    let host = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]});
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}});
    pod_with_volume(
        &testbed,
        &json!({"local": {"path": "/mnt/disk-1"}, "nodeAffinity": affinity}),
    );
    let run = |args: &[&str]| scupper(&testbed, args);
    let found = "only this node can use volume pv-data of claim data: default/db";
    let (code, text) = run(&["plan", NODE, "--force"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(found), "{text}");
    let drain = ["drain", NODE, "--local", "--force"];
    let (code, text) = run(&[&drain[..], &["--local-data=refuse"]].concat());
    assert_eq!(code, Some(5), "{text}");
    assert_eq!(pods_on(&testbed, NODE), 1, "{text}");
    let (code, text) = run(&[&drain[..], &["--local-data=warn"]].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(found), "{text}");
    assert_eq!(pods_on(&testbed, NODE), 0, "{text}");
    let events = testbed.kubectl(&["get", "events", "-o", "jsonpath={.items[*].reason}"]);
    assert!(events.contains("PreFlightFinding"), "{events}");
}
