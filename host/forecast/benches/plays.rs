//! How long a forecast takes: 200 plays of a drain of 110 pods, without budgets and with one for each workload.
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
use scupper_engine::draft;
use scupper_forecast::{Forecast, Learned};

const PODS: usize = 110;
const WORKLOADS: usize = 11;
const PLAYS: usize = 200;

fn main() {
    // `cargo test --benches` only checks that it starts.
    let plays = if std::env::args().any(|arg| arg == "--test") {
        1
    } else {
        PLAYS
    };
    for (text, has_budgets) in [
        ("without budgets", false),
        ("with a budget for each workload", true),
    ] {
        let mut situation = situation(Vec::new());
        situation.pods = (0..PODS)
            .map(|number| pod_of(&format!("pod-{number}"), &format!("w{}", number % WORKLOADS)))
            .collect();
        if has_budgets {
            situation.budgets = (0..WORKLOADS)
                .map(|number| budget_of(&format!("w{number}"), 1))
                .collect();
        }
        situation.plan = draft(&situation.pods, &situation.request.settings, BEGIN);
        let begun = Instant::now();
        let forecast = Forecast::of(&situation, &Learned::default(), plays);
        assert_eq!(forecast.ends.drained.len(), plays);
        println!("{PODS} pods {text}, {plays} plays: {:.0?}", begun.elapsed());
    }
}
