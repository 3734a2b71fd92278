//! Two measurements of evictions on a real API server.
//! * `others`: what another client notices of them, and how long they take.
//! * `limits`: the cost of limiting a driver to the pods of its node: a drain of 100 pods out of 100, 300, 1,000 and
//!   3,000 in one namespace, by a driver with the token of its pod. Once without such a limit, once with each component
//!   of `deploy/` that sets one.
//!
//! Compare figures of one run with each other, never with figures of another machine.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark stops at what it did not expect, and prints; tests share its helpers"
)]

#[path = "../../tests/real_deploy/installed.rs"]
mod installed;
#[path = "../../tests/support/limit.rs"]
mod limit;
mod others;
#[path = "../drain/testbed.rs"]
mod testbed;

use std::time::{Duration, Instant};

use http::Method;
use installed::{Driver, Installed, ask, event, until};
use serde_json::json;

/// The number of pods to evict: a usual node.
const LEAVE: usize = 100;
/// The most pods that the testbed creates at once.
const MOST_AT_ONCE: usize = 500;
const SIZES: [usize; 4] = [100, 300, 1000, 3000];
const BOUNDS: [(&str, &[&str]); 3] = [
    ("none", &[]),
    ("evict-as-node", &["evict-as-node"]),
    ("own-pods", &["own-pods"]),
];

/// Arguments choose one of the two, and of `others` the ways: `others scupper flood-3`.
#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let chosen = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let chosen: Vec<String> = chosen.collect();
    let wants = |part| chosen.first().is_none_or(|first| first == part);
    if wants("others") {
        others::compare(chosen.get(1..).unwrap_or_default()).await;
    }
    if wants("limits") {
        limits().await;
    }
}

async fn limits() {
    println!("\n{LEAVE} pods of a namespace leave a node, and die at once\n");
    println!(
        "{:<15} {:>20} {:>9} {:>9} {:>12}",
        "bound by", "pods in namespace", "evicted", "wall", "per eviction"
    );
    for (name, components) in BOUNDS {
        let restricted = ["--apiserver-arg", "--enable-admission-plugins=NodeRestriction"];
        let options = [&["--nodes", "2"][..], &restricted].concat();
        let installed = Installed::with("self-claim", components, &options).await;
        for size in SIZES {
            let (evicted, wall) = drain(&installed, size).await;
            println!(
                "{name:<15} {size:>20} {evicted:>9} {:>7.2} s {:>9.1} ms",
                wall.as_secs_f64(),
                wall.as_secs_f64() * 1000.0 / evicted.max(1) as f64
            );
        }
    }
}

/// One drain of node-0, from the LifecycleEvent to its end, and the number of evicted pods. It has five minutes.
async fn drain(installed: &Installed, size: usize) -> (usize, Duration) {
    let namespace = format!("crowd-{size}");
    pods(installed, "node-0", LEAVE, &namespace);
    for made in (LEAVE..size).step_by(MOST_AT_ONCE) {
        pods(installed, "node-1", MOST_AT_ONCE.min(size - made), &namespace);
    }
    // A server that is still busy with their start is slow for all.
    let pending = format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=status.phase=Pending&limit=1");
    let run = async || {
        let pods = installed.get(&pending).await;
        pods["items"].as_array().is_some_and(Vec::is_empty)
    };
    until(run, || format!("pods of {namespace} do not begin to run")).await;
    let own = installed.kubeconfig_on("node-0").await;
    let driver = Driver::start(installed, "node-0", &own, &["--force", "--sla", "5m"]).await;
    until(async || driver.log().contains("leads=true"), || driver.log()).await;
    let begun = Instant::now();
    let name = format!("drain-{size}");
    installed.create(&[event(&name, "drain.slm.k8s.io", "node-0")]);
    let ended = || ["Drained in", "DeadlineExceeded in"].map(|end| driver.log().contains(end));
    while ended() == [false; 2] {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let wall = begun.elapsed();
    // The next driver would resume an unfinished drain.
    let path = format!("/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/{name}");
    until(
        async || installed.get(&path).await["code"] == 404,
        || driver.log(),
    )
    .await;
    let evicted = LEAVE - installed.pods(&namespace, "node-0").await;
    drop(driver);
    let back = json!({"spec": {"unschedulable": null}});
    ask(&installed.admin, Method::PATCH, "/api/v1/nodes/node-0", &back).await;
    let path = format!("/api/v1/namespaces/{namespace}");
    ask(&installed.admin, Method::DELETE, &path, &serde_json::Value::Null).await;
    // A server that is still busy with its deletion is slow for the next drain.
    let is_gone = async || installed.get(&path).await["code"] == 404;
    until(is_gone, || format!("{namespace} does not go")).await;
    (evicted, wall)
}

fn pods(installed: &Installed, node: &str, count: usize, namespace: &str) {
    let count = count.to_string();
    let of = [
        "--node",
        node,
        "--namespace",
        namespace,
        "--no-wait",
        "--count",
        &count,
    ];
    installed.testbed.make_pods(&of);
}
