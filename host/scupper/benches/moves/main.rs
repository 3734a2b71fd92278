//! The time to empty a full compute host: its servers one at a time, and in parallel, on one real Nova in one run.
//!
//! Nova's hypervisor is a stand-in that takes a fixed time for each server. So this compares strategies, and says
//! nothing about a network.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    dead_code,
    reason = "a benchmark stops at what it did not expect, and prints; tests share its helpers"
)]

#[path = "../../tests/real_openstack/driver.rs"]
mod driver;
#[path = "../../tests/support/http.rs"]
mod http;
/// One at a time they take longer than anything in a test.
mod limit {
    pub(crate) const LIMIT: std::time::Duration = std::time::Duration::from_secs(3600);
}
#[path = "../../tests/real_openstack/nova.rs"]
mod nova;
#[path = "../../tests/real_openstack/testbed.rs"]
mod testbed;
#[path = "../../tests/real_openstack/tool.rs"]
mod tool;

use std::time::{Duration, Instant};

use driver::{Drain, limited};
use scupper_engine::HookPhase::BeforeDrain;
use testbed::{A, Testbed, WIDE};

const SERVERS: usize = 50;
/// The duration of a live migration.
const SECONDS: &str = "2";
const PARALLEL: [usize; 2] = [1, 10];

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let bed = Testbed::up(WIDE, 1);
    println!(
        "{SERVERS} servers of a real Nova, {SECONDS} s for each live migration, at most {} at a time in Nova\n",
        WIDE.max_live
    );
    println!(
        "{:>8} {:>9} {:>12} {:>6}",
        "parallel", "makespan", "a server", "ratio"
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut one_at_a_time = None;
    for parallel in PARALLEL {
        let makespan = runtime.block_on(empty(&bed, parallel)).as_secs_f64();
        let ratio = *one_at_a_time.get_or_insert(makespan) / makespan;
        println!(
            "{parallel:>8} {makespan:>7.1} s {:>10.2} s {ratio:>5.1}x",
            makespan / SERVERS as f64
        );
    }
    bed.down();
}

async fn empty(bed: &Testbed, parallel: usize) -> Duration {
    bed.purge();
    bed.boot(SERVERS, &["--seconds", SECONDS]);
    let parallel = parallel.to_string();
    let mut drain = Drain::new(bed, &limited(&[("parallel", &parallel)])).await;
    let begun = Instant::now();
    drain.run(BeforeDrain).await.unwrap();
    let makespan = begun.elapsed();
    assert_eq!(bed.nova().servers(A), [] as [String; 0]);
    makespan
}
