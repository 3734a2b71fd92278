//! The driver's own memory while it compiles and loads a component as large as a Python policy.

use std::fs;
use std::path::Path;
use std::time::Instant;

use scupper_policy_reload::ask_list;
use sha2::{Digest, Sha256};
use wasm_encoder::{ConstExpr, DataSection, MemorySection, MemoryType, Module};

use crate::component::{beside, section};
use crate::policies;
use crate::rig::{LIMIT, Rig};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn a_component_of_18_mb_costs_the_driver_less_than_10_mib() {
    let rig = Rig::start().await;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, state) = (path("p.wasm"), path("state"));
    let argument = policies::argument("priority");
    let small = fs::read(argument.split_once('=').unwrap().1).unwrap();
    fs::write(&file, &small).unwrap();
    let policy = format!("p={file}");
    let cache = path("compiled");
    let driver = rig
        .driver(&[
            "--policy",
            &policy,
            "--policy-cache",
            &cache,
            "--state-dir",
            &state,
        ])
        .await;
    // The first reload has initialized everything that it initializes once.
    replace(&file, &state, &custom(small.clone(), &[1])).await;
    let before = kib(driver.pid(), "VmRSS:");
    // From here on the system records the peak.
    fs::write(format!("/proc/{}/clear_refs", driver.pid()), "5").unwrap();
    let large = large(&small);
    assert!(large.len() as u64 > 18 * MIB);
    replace(&file, &state, &large).await;
    let most = kib(driver.pid(), "VmHWM:");
    let grown = (most - before.min(most)) * 1024;
    assert!(grown < 10 * MIB, "from {before} to {most} KiB");
}

/// A policy, and beside it an instance with a snapshot, and a large unused section.
fn large(policy: &[u8]) -> Vec<u8> {
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 160,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut data = DataSection::new();
    let snapshot = (0..9_u32 << 20).map(|place| (place % 251) as u8);
    data.active(0, &ConstExpr::i32_const(0), snapshot);
    let mut module = Module::new();
    module.section(&memories).section(&data);
    let component = beside(policy, &module.finish());
    custom(component, &vec![7; usize::try_from(9 * MIB).unwrap()])
}

fn custom(mut component: Vec<u8>, content: &[u8]) -> Vec<u8> {
    section(&mut component, 0, &[b"\x04more", content].concat());
    component
}

/// Replaces the policy's file, and waits until it is active.
async fn replace(file: &str, state: &str, wasm: &[u8]) {
    let part = format!("{file}.part");
    fs::write(&part, wasm).unwrap();
    fs::rename(&part, file).unwrap();
    let digest = Sha256::digest(wasm);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let begun = Instant::now();
    loop {
        let list = ask_list(Path::new(state)).await.unwrap_or_default();
        let slot = list.pointer("/policies/0").cloned().unwrap_or_default();
        if slot["digest"] == digest.as_str() {
            return;
        }
        assert!(slot["problem"].is_null() && begun.elapsed() < 2 * LIMIT, "{slot}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn kib(pid: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
