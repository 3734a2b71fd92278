//! A drain of 110 pods beside `kubectl drain`, on one real API server in one run; and the driver's cost while it works
//! and waits: its memory, and the time from its start until the kubelet has registered it and until it is ready. And the
//! requests that a policy adds by asking about the cluster.
//!
//! Compare figures of one run with each other, never with figures of another machine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark stops at what it did not expect, and prints; tests share its helpers"
)]

mod asking;
#[path = "../../tests/support/collector.rs"]
mod collector;
mod driver;
#[path = "../../tests/support/guests.rs"]
mod guests;
mod testbed;

use std::time::{Duration, Instant};

use collector::{Collector, Manner};
use driver::{Driver, Started};
use testbed::Testbed;

const PODS: usize = 110;

/// The driver's work right after it became ready is done by then.
const IDLE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let policies =
        std::env::var_os("SCUPPER_POLICIES").expect("SCUPPER_POLICIES names the folder of the policies");
    let policies = std::path::PathBuf::from(policies);
    let testbed = Testbed::up();
    // The namespace of its lease.
    testbed.kubectl(&["create", "namespace", "scupper"]);
    println!(
        "{PODS} pods without a budget, grace 30 s, kube-apiserver {}\n",
        testbed.version()
    );
    println!(
        "{:<12} {:<10} {:>9} {:>10} {:>13}",
        "pods take", "drained by", "wall", "requests", "beyond pods"
    );
    let mut driver = Driver::start(&testbed, "bench", "node-1", Some(&policies.join("slurm.wasm"))).await;
    let first = driver.started();
    driver.restart().await;
    // It publishes its transitions now; its idle memory settles a moment later.
    tokio::time::sleep(IDLE).await;
    let idle = driver.rss_mib();
    let mut last = String::new();
    driver.forget_the_most();
    for takes in [0, 2] {
        let kubectl = by_kubectl(&testbed, takes);
        row(takes, "kubectl", &kubectl);
        let ours = by_scupper(&testbed, &driver, takes, &mut last).await;
        row(takes, "scupper", &ours);
        println!(
            "{:<12} {:<10} {:>8.1}x {:>9.1}x",
            "",
            "ratio",
            kubectl.wall.as_secs_f64() / ours.wall.as_secs_f64(),
            kubectl.requests as f64 / ours.requests as f64
        );
    }
    println!("\nour requests for the last drain:\n{last}");
    figures(&driver, first, idle);
    traced(&testbed, driver).await;
    asking::compare(&testbed).await;
}

/// The same driver once more, with traces of its drains.
async fn traced(testbed: &Testbed, mut driver: Driver) {
    let collector = Collector::start(Manner::Takes).await;
    driver.restart_with(&["--otlp-endpoint", &collector.url]).await;
    tokio::time::sleep(IDLE).await;
    let idle = driver.rss_mib();
    by_scupper(testbed, &driver, 0, &mut String::new()).await;
    // The exporter collects the last spans for a second.
    tokio::time::sleep(IDLE).await;
    let spans = collector.spans().len();
    println!("RSS, with slurm.wasm and traces:");
    println!("  idle, before any drain   {idle:>7.1} MiB");
    println!(
        "  after a drain            {:>7.1} MiB, {spans} spans",
        driver.rss_mib()
    );
}

/// The driver's cost, started as the `DaemonSet` of `deploy/` starts it.
fn figures(driver: &Driver, first: Started, idle: f64) {
    println!("start, until            registered     ready");
    for (which, started) in [
        ("compiling slurm.wasm", first),
        ("with it compiled", driver.started()),
    ] {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        println!(
            "  {which:<20} {:>8.0} ms {:>6.0} ms",
            ms(started.registered),
            ms(started.ready)
        );
    }
    println!("RSS, with slurm.wasm:");
    println!("  idle, before any drain   {idle:>7.1} MiB");
    println!("  at most, during drains   {:>7.1} MiB", driver.most_rss_mib());
    println!("  after two drains         {:>7.1} MiB", driver.rss_mib());
}

struct Drained {
    wall: Duration,
    requests: usize,
}

fn row(takes: u64, who: &str, drained: &Drained) {
    println!(
        "{:<12} {who:<10} {:>7.2} s {:>10} {:>13}",
        format!("{takes} s"),
        drained.wall.as_secs_f64(),
        drained.requests,
        drained.requests.saturating_sub(PODS)
    );
}

fn by_kubectl(testbed: &Testbed, takes: u64) -> Drained {
    testbed.pods("node-0", PODS, takes);
    let mark = testbed.mark();
    let begin = Instant::now();
    testbed.kubectl(&["drain", "node-0", "--force", "--ignore-daemonsets"]);
    let wall = begin.elapsed();
    let requests = testbed.requests(&["--user-agent", "kubectl"], &mark);
    testbed.kubectl(&["uncordon", "node-0"]);
    Drained { wall, requests }
}

async fn by_scupper(testbed: &Testbed, driver: &Driver, takes: u64, list: &mut String) -> Drained {
    testbed.pods("node-1", PODS, takes);
    let mark = testbed.mark();
    let wall = driver.drain(testbed).await;
    let requests = testbed.requests(&["--user-agent", "scupper"], &mark);
    *list = testbed.list_requests(&["--user-agent", "scupper"], &mark);
    driver.give_back(testbed).await;
    Drained { wall, requests }
}
