//! Whole drains by the program itself on a real API server: with the kubelet simulator beside it, and by self-claim.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "helpers of tests, shared with the benchmark"
)]

#[path = "real_apiserver/cordon.rs"]
mod cordon;
#[path = "../benches/drain/driver.rs"]
mod driver;
#[path = "real_apiserver/self_claim.rs"]
mod self_claim;
#[path = "support/skip.rs"]
mod skip;
#[path = "../benches/drain/testbed.rs"]
mod testbed;

use driver::Driver;
use serde_json::Value;
use testbed::Testbed;

const PODS: usize = 110;

#[tokio::test]
async fn a_drain_of_110_pods_takes_at_most_10_requests_more_than_pods() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let testbed = Testbed::up();
    let driver = Driver::start(&testbed, "node-1", None).await;
    for takes in [0, 2] {
        testbed.pods("node-1", PODS, takes);
        let mark = testbed.mark();
        let took = driver.drain(&testbed).await;
        assert!(
            took > std::time::Duration::from_secs(takes),
            "over before its pods could be gone"
        );
        let requests = testbed.requests("scupper", &mark);
        let list = testbed.list_requests("scupper", &mark);
        assert!(
            requests <= PODS + 10,
            "{requests} for {PODS} pods that take {takes} s:
{list}"
        );
        assert_eq!(pods_on(&testbed, "node-1"), 0);
        assert_eq!(condition(&testbed, "node-1", "Drained"), "True");
        assert_eq!(condition(&testbed, "node-1", "DrainInProgress"), "False");
        driver.give_back(&testbed).await;
        assert_eq!(condition(&testbed, "node-1", "Drained"), "False");
        assert_eq!(node(&testbed, "node-1")["spec"]["unschedulable"], Value::Null);
    }
}

fn node(testbed: &Testbed, name: &str) -> Value {
    serde_json::from_str(&testbed.kubectl(&["get", "node", name, "-o", "json"])).unwrap()
}

fn condition(testbed: &Testbed, name: &str, kind: &str) -> String {
    let node = node(testbed, name);
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind)
        .unwrap();
    found["status"].as_str().unwrap().to_owned()
}

fn pods_on(testbed: &Testbed, node: &str) -> usize {
    let selector = format!("--field-selector=spec.nodeName={node}");
    let pods = testbed.kubectl(&["get", "pods", "--all-namespaces", "-o", "name", &selector]);
    pods.lines().count()
}
