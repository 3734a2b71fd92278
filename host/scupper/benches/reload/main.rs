//! The cost of a new revision of a policy for a running driver: the time from a changed file to active, and the memory
//! of the driver while it compiles and loads a component as large as a Python one.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at what it did not expect, and prints"
)]

#[path = "../../tests/support/component.rs"]
mod component;
mod driver;
mod large;
mod memory;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/memory.rs"]
mod status;

use std::path::PathBuf;
use std::time::Duration;

use driver::{Driver, compile};
use memory::{Memory, Watch};
use sha2::{Digest, Sha256};

/// Revisions of each policy.
const REVISIONS: u32 = 20;
/// Revisions that come closer than this are slowed down, as those of a flapping tag.
const CALM: Duration = Duration::from_millis(4200);
/// The pause after a load, until the driver has freed its temporary memory.
const SETTLED: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let folder =
        std::env::var_os("SCUPPER_POLICIES").expect("SCUPPER_POLICIES names the folder of the policies");
    let policy = |name: &str| std::fs::read(PathBuf::from(&folder).join(name)).unwrap();
    let slurm = policy("slurm.wasm");
    println!(
        "a changed file, until its policy is active in a running driver; {REVISIONS} revisions, none compiled before"
    );
    println!(
        "{:<16} {:>8} {:>8} {:>8} {:>16}",
        "", "size", "median", "worst", "compiling alone"
    );
    let driver = Driver::start(&revision(&slurm, u32::MAX)).await;
    for name in ["announce.wasm", "priority.wasm", "slurm.wasm"] {
        time(&driver, name, &policy(name)).await;
    }
    println!();
    weigh(&driver, &large::grown(&slurm)).await;
}

/// The same policy in other bytes: with an unused custom section.
fn revision(wasm: &[u8], number: u32) -> Vec<u8> {
    let mut revision = wasm.to_vec();
    // A section of 13 bytes: the length of the name, the name, the number.
    revision.extend([0, 13, 8]);
    revision.extend(b"revision");
    revision.extend(number.to_le_bytes());
    revision
}

async fn time(driver: &Driver, name: &str, wasm: &[u8]) {
    let (mut active, mut compiled) = (Vec::new(), Vec::new());
    for number in 0..REVISIONS {
        let revision = revision(wasm, number);
        tokio::time::sleep(CALM).await;
        active.push(driver.replace(&revision, &digest(&revision)).await);
        compiled.push(compile(&driver.file()).0);
    }
    active.sort_unstable();
    compiled.sort_unstable();
    println!(
        "{name:<16} {:>4} KiB {:>5} ms {:>5} ms {:>13} ms",
        wasm.len() >> 10,
        active[active.len() / 2].as_millis(),
        active[active.len() - 1].as_millis(),
        compiled[compiled.len() / 2].as_millis(),
    );
}

async fn weigh(driver: &Driver, wasm: &[u8]) {
    tokio::time::sleep(CALM).await;
    let before = Memory::of(driver.pid());
    let watch = Watch::start(driver.pid());
    let took = driver.replace(wasm, &digest(wasm)).await;
    tokio::time::sleep(SETTLED).await;
    let seen = watch.stop();
    let after = Memory::of(driver.pid());
    let (_, native) = compile(&driver.file());
    println!(
        "a component of {:.1} MiB, active after {:.1} s; {:.1} MiB of native code",
        mib(wasm.len() as u64),
        took.as_secs_f64(),
        mib(native)
    );
    println!(
        "memory of the driver, in MiB, looked at {} times: before, most, growth, {} s later",
        seen.looks,
        SETTLED.as_secs()
    );
    type Kind = (&'static str, fn(&Memory) -> u64);
    let kinds: [Kind; 5] = [
        ("RSS", |memory| memory.rss),
        ("  anonymous", |memory| memory.anonymous),
        ("  files", |memory| memory.file),
        ("  sealed files", |memory| memory.shared),
        ("held, not mapped", |memory| memory.sealed),
    ];
    for (what, of) in kinds {
        let (before, most) = (of(&before), of(&seen.most));
        println!(
            "  {what:<18} {:>7.1} {:>7.1} {:>+7.1} {:>7.1}",
            mib(before),
            mib(most),
            mib(most) - mib(before),
            mib(of(&after))
        );
    }
    println!("  the compiler's child, for its own part: {:.0}", mib(seen.child));
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
