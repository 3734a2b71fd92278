//! What a recording costs a drain of 110 pods: CPU time and memory of the driver's process, on a simulated API server.
//!
//! `cargo bench --bench recording -- FILE`: only what the recorder itself takes for the drain that was recorded in FILE.
//!
//! Three drivers drain by turns: one that records nothing, one that records and has no earlier recordings, and one that
//! also estimates the end from them. Compare only figures of the same run.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at what it did not expect, and prints"
)]

mod alone;
mod driver;
#[path = "../support/memory.rs"]
mod memory;
#[path = "../support/process.rs"]
mod process;

use std::collections::BTreeSet;
use std::time::Duration;

use driver::{Driver, Keeps};

const PODS: usize = 110;
/// Drains between two looks at the process: its CPU time is shown in steps of 10 ms.
const BATCH: u32 = 5;
/// Each driver has as many batches.
const TURNS: usize = 8;
/// The first drain of each process is slower and not counted.
const MODES: [(&str, Keeps); 3] = [
    ("no recording", Keeps::Nothing),
    ("recording", Keeps::Last),
    ("recording and estimate", Keeps::All),
];

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let file = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    if let Some(file) = file {
        let took = alone::cpu(file.as_ref()).await;
        println!("the recorder alone takes {took:.2?} of CPU time");
        return;
    }
    println!("{PODS} pods that end after half a second, {TURNS} turns of {BATCH} drains each\n");
    let mut drivers = Vec::new();
    for (_, keeps) in MODES {
        let mut driver = Driver::start(keeps).await;
        driver.drain(PODS).await;
        drivers.push((driver, Vec::new()));
    }
    for _ in 0..TURNS {
        for (driver, turns) in &mut drivers {
            let before = driver.cpu();
            for _ in 0..BATCH {
                driver.drain(PODS).await;
            }
            turns.push((driver.cpu() - before) / BATCH);
        }
    }
    println!(
        "{:<24} {:>12} {:>12} {:>8} {:>10} {:>10} {:>10}",
        "CPU time of a drain", "mean", "median", "more", "most RSS", "RSS", "RssAnon"
    );
    let without = mean(&drivers[0].1);
    for ((name, _), (driver, turns)) in MODES.iter().zip(&mut drivers) {
        let mean = mean(turns);
        turns.sort();
        println!(
            "{name:<24} {:>9.1} ms {:>9.1} ms {:>6.1} % {:>6.1} MiB {:>6.1} MiB {:>6.1} MiB",
            mean * 1e3,
            turns[turns.len() / 2].as_secs_f64() * 1e3,
            (mean / without - 1.0) * 100.0,
            driver.mib("VmHWM:"),
            driver.mib("VmRSS:"),
            driver.mib("RssAnon:"),
        );
    }
    let recording = &drivers[1].0;
    let alone = alone::cpu(&recording.recordings()[0]).await;
    println!(
        "\na recording has {} KiB; the recorder alone takes {:.1} ms for it, {:.1} %",
        recording.recorded() >> 10,
        alone.as_secs_f64() * 1e3,
        alone.as_secs_f64() / without * 100.0
    );
    let without = &drivers[0].0;
    println!(
        "\n{:<48} {:>12} {:>12}",
        "requests after the first drain", "without", "recording"
    );
    let kinds: BTreeSet<&String> = without
        .requests()
        .keys()
        .chain(recording.requests().keys())
        .collect();
    for kind in kinds {
        let [without, recording] =
            [without, recording].map(|driver| driver.requests().get(kind).copied().unwrap_or_default());
        println!("{kind:<48} {without:>12} {recording:>12}");
    }
}

fn mean(turns: &[Duration]) -> f64 {
    turns.iter().sum::<Duration>().as_secs_f64() / turns.len() as f64
}
