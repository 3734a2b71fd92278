//! How long a forecast takes: plays of a drain of 110 pods with few and with tight budgets, and of ten such drains that have
//! budgets in common.
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    dead_code,
    reason = "a benchmark prints; it shares the helpers of tests"
)]

#[path = "../tests/forecasts/cluster.rs"]
mod cluster;

use std::time::Instant;

use cluster::{BEGIN, budget_of, pod_of, situation};
use fastrand::Rng;
use scupper_engine::{Budget, Uid, draft};
use scupper_forecast::{Forecast, Learned, Situation, Together};

const PODS: usize = 110;
const PLAYS: usize = 200;
const NODES: usize = 10;
/// Pods of each workload, where ten nodes have them in common.
const REPLICAS: usize = 55;

fn main() {
    // `cargo test --benches` only checks that it starts.
    let is_test = std::env::args().any(|arg| arg == "--test");
    let plays = |plays: usize| if is_test { 1 } else { plays };
    let budgets = |workloads: usize, allowed: i32| -> Vec<Budget> {
        let names = (0..workloads).map(|number| format!("w{number}"));
        names.map(|name| budget_of(&name, allowed)).collect()
    };
    for (text, workloads, budgets) in [
        ("without budgets", 11, Vec::new()),
        ("with a budget for each ten, one at a time", 11, budgets(11, 1)),
        ("with a budget for each 55, five at a time", 2, budgets(2, 5)),
    ] {
        let situation = node(0, workloads, &budgets);
        let begun = Instant::now();
        let forecast = Forecast::of(&situation, &Learned::default(), plays(PLAYS));
        assert_eq!(forecast.ends.drained.len(), plays(PLAYS));
        println!(
            "{PODS} pods {text}, {} plays: {:.0?}",
            plays(PLAYS),
            begun.elapsed()
        );
    }
    let workloads = NODES * PODS / REPLICAS;
    let nodes: Vec<_> = (0..NODES)
        .map(|number| node(number, workloads, &budgets(workloads, 5)))
        .collect();
    let begun = Instant::now();
    let together = Together::of(&nodes.iter().collect::<Vec<_>>(), &Learned::default(), plays(10));
    assert_eq!(together.at_once.drained.len(), plays(10));
    println!(
        "{NODES} nodes of {PODS} pods with {workloads} budgets in common, {} plays: {:.0?}",
        plays(10),
        begun.elapsed()
    );
}

/// A node with pods of so many workloads.
fn node(number: usize, workloads: usize, budgets: &[Budget]) -> Situation {
    let mut random = Rng::with_seed(number as u64);
    let mut situation = situation(budgets.to_vec());
    let name = format!("worker-{number}");
    let pod = |place: usize| {
        let mut pod = pod_of(
            &format!("pod-{number}-{place}"),
            &format!("w{}", place % workloads),
        );
        // As an API server gives them.
        pod.id.uid = Uid::new(format!("{:08x}-0000-4000-8000-000000000000", random.u32(..)));
        pod.node.clone_from(&name);
        pod
    };
    situation.pods = (0..PODS).map(pod).collect();
    situation.plan = draft(&situation.pods, &situation.request.settings, BEGIN);
    situation.request.node.clone_from(&name);
    situation.node.name = name;
    situation
}
