//! `kubectl cordon` as a trigger, on a real API server.

use std::time::Instant;

use super::self_claim::Claimer;
use super::testbed::Testbed;
use super::{node, pods_on, skip};
use crate::limit::LIMIT;

fn reason(testbed: &Testbed, kind: &str) -> String {
    let node = node(testbed, "node-2");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or_else(String::new, |found| found["reason"].as_str().unwrap().to_owned())
}

fn becomes(testbed: &Testbed, claimer: &Claimer, wanted: &str) {
    let begun = Instant::now();
    while reason(testbed, "Drained") != wanted {
        assert!(begun.elapsed() < LIMIT, "not {wanted}:\n{}", claimer.log());
    }
}

#[test]
fn kubectl_cordon_drains_a_labelled_node_and_kubectl_uncordon_restores_it() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let testbed = Testbed::up();
    testbed.pods("node-2", 5, 1);
    let claimer = Claimer::start(&testbed, "node-2");
    testbed.kubectl(&["label", "node", "node-2", "scupper.dev/drain-on-cordon=true"]);
    testbed.kubectl(&["cordon", "node-2"]);
    becomes(&testbed, &claimer, "DrainCompleted");
    assert_eq!(pods_on(&testbed, "node-2"), 0);
    assert_eq!(node(&testbed, "node-2")["spec"]["unschedulable"], true);
    testbed.kubectl(&["uncordon", "node-2"]);
    becomes(&testbed, &claimer, "MaintenanceComplete");
}
