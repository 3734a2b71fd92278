//! `kubectl cordon` as a trigger, on a real API server.

use std::time::{Duration, Instant};

use super::area::Area;
use super::self_claim::Claimer;
use super::testbed::Testbed;
use super::{node, pods_on, skip};
use crate::limit::LIMIT;

/// The reason of a node's condition; empty without the condition.
pub(super) fn reason(testbed: &Testbed, name: &str, kind: &str) -> String {
    let node = node(testbed, name);
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or_else(String::new, |found| found["reason"].as_str().unwrap().to_owned())
}

/// Waits until the node's condition of this kind has the reason.
#[track_caller]
pub(super) fn becomes(testbed: &Testbed, node: &str, claimer: &Claimer, [kind, wanted]: [&str; 2]) {
    let begun = Instant::now();
    while reason(testbed, node, kind) != wanted {
        assert!(
            begun.elapsed() < LIMIT,
            "{kind} is not {wanted}:\n{}\nthe pods there:\n{}",
            claimer.log(),
            testbed.kubectl(&[
                "get",
                "pods",
                "--all-namespaces",
                "--output=json",
                &format!("--field-selector=spec.nodeName={node}"),
            ])
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn kubectl_cordon_drains_a_labelled_node_and_kubectl_uncordon_restores_it() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    area.pods(name, 5, 1);
    let claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    area.kubectl(&["label", "node", name, "scupper.dev/drain-on-cordon=true"]);
    area.kubectl(&["cordon", name]);
    becomes(&area, name, &claimer, ["Drained", "DrainCompleted"]);
    assert_eq!(pods_on(&area, name), 0);
    assert_eq!(node(&area, name)["spec"]["unschedulable"], true);
    area.kubectl(&["uncordon", name]);
    becomes(&area, name, &claimer, ["Drained", "MaintenanceComplete"]);
}
