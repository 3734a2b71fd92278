//! The program itself on a real API server: whole drains, with the kubelet simulator and by self-claim, and its plans
//! compared with those of `kubectl drain`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests, shared with the benchmark"
)]

mod area;
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
mod neighbours;
mod node_is_off;
mod pages;
mod parity;
mod people;
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

use area::Area;
use driver::Driver;
use serde_json::Value;
use setup::Account;
use testbed::Testbed;
use tokio::sync::Mutex;

const PODS: usize = 110;

/// One control plane at a time beside the shared one, for tests that kill or change it: each uses most of a small machine.
static ALONE: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn a_drain_of_110_pods_takes_at_most_11_requests_more_than_pods() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    let account = Account::admin(&area);
    let driver = Driver::start_as(&area, &area.driver(), name, &account.kubeconfig, None).await;
    for takes in [0, 2] {
        area.pods(name, PODS, takes);
        let (mark, cut) = (area.mark(), area.watches_cut());
        let took = driver.drain(&area).await;
        assert!(
            took > std::time::Duration::from_secs(takes),
            "over before its pods could be gone"
        );
        let requests = area.requests(&["--user", &account.user], &mark);
        let list = area.list_requests(&["--user", &account.user], &mark);
        // A server that lacks CPU time ends watches, which then restart: this many may be added.
        let cut = begun_again(&list).min(area.watches_cut() - cut);
        // The driver publishes the status of a drain that lasts, once every ten seconds.
        let published = usize::try_from(took.as_secs() / 10).unwrap();
        assert!(
            requests <= PODS + 11 + cut + published,
            "{requests} for {PODS} pods that take {takes} s, {cut} of them for watches that the server ended, in {took:?}:
{list}"
        );
        assert_eq!(pods_on(&area, name), 0);
        assert_eq!(condition(&area, name, "Drained"), "True");
        assert_eq!(condition(&area, name, "DrainInProgress"), "False");
        driver.give_back(&area).await;
        assert_eq!(condition(&area, name, "Drained"), "False");
        assert_eq!(node(&area, name)["spec"]["unschedulable"], Value::Null);
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
    testbed.get(&format!("/api/v1/nodes/{name}"))
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
    let pods = testbed.get(&format!("/api/v1/pods?fieldSelector=spec.nodeName={node}"));
    pods["items"].as_array().unwrap().len()
}
