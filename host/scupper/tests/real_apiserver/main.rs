//! The program itself on a real API server: whole drains, with the kubelet simulator and by self-claim, and its plans
//! compared with those of `kubectl drain`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests, shared with the benchmark"
)]

mod commands;
mod cordon;
#[path = "../../benches/drain/driver.rs"]
mod driver;
mod facts;
mod forcing;
#[path = "../support/guests.rs"]
mod guests;
#[path = "../support/limit.rs"]
mod limit;
mod local_data;
mod node_is_off;
mod parity;
mod pre_flight;
mod raising;
mod restarts;
mod self_claim;
mod setup;
#[path = "../support/skip.rs"]
mod skip;
mod surging;
#[path = "../../benches/drain/testbed.rs"]
mod testbed;
mod volumes;

use driver::Driver;
use serde_json::Value;
use testbed::Testbed;
use tokio::sync::Mutex;

const PODS: usize = 110;

/// One control plane at a time: each uses most of a small machine.
static ALONE: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn a_drain_of_110_pods_takes_at_most_11_requests_more_than_pods() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let testbed = Testbed::up();
    let driver = Driver::start(&testbed, "node-1", None).await;
    for takes in [0, 2] {
        testbed.pods("node-1", PODS, takes);
        let (mark, cut) = (testbed.mark(), testbed.watches_cut());
        let took = driver.drain(&testbed).await;
        assert!(
            took > std::time::Duration::from_secs(takes),
            "over before its pods could be gone"
        );
        let requests = testbed.requests("scupper", &mark);
        let list = testbed.list_requests("scupper", &mark);
        // A server that lacks CPU time ends watches, which then restart: this many may be added.
        let cut = begun_again(&list).min(testbed.watches_cut() - cut);
        // The driver publishes the status of a drain that lasts, once every ten seconds.
        let published = usize::try_from(took.as_secs() / 10).unwrap();
        assert!(
            requests <= PODS + 11 + cut + published,
            "{requests} for {PODS} pods that take {takes} s, {cut} of them for watches that the server ended, in {took:?}:
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

/// The number of watches of pods started after the first, in a list of requests.
fn begun_again(list: &str) -> usize {
    let watches = list.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(1..3)? == ["watch", "pods"]).then(|| words[0].parse::<usize>().unwrap())
    });
    watches.sum::<usize>() - 1
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
