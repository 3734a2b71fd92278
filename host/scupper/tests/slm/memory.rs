//! The driver's own memory while it compiles and loads a component as large as a Python policy, and while it reads objects
//! that others have made as large as they can.

use std::fs;
use std::path::Path;
use std::time::Instant;

use scupper_policy_reload::ask_list;
use scupper_simulator::api::{self, objects};
use serde_json::json;
use sha2::{Digest, Sha256};
use wasm_encoder::{ConstExpr, DataSection, MemorySection, MemoryType, Module};

use crate::component::{beside, section};
use crate::policies;
use crate::rig::{DRIVER, LIMIT, NODE, Rig};

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

/// About as much as an API server stores of one object.
const OBJECT: usize = 1_400_000;
/// About as much as it stores of annotations.
const ANNOTATIONS: usize = 250_000;

/// Users of a namespace decide how large these are, and how many there are.
/// More than one thread: the API server must renew the Lease while it writes a list of this size.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn objects_of_others_however_large_cost_the_driver_less_than_100_mib() {
    for watch_list in [true, false] {
        let server = api::Options {
            watch_list,
            ..api::Options::default()
        };
        let rig = Rig::on(server, |_| {}).await;
        let size = fill(&rig);
        assert!(size > 250 * MIB, "{size}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n\
                      drain: {wait-for-volumes: {at-most: 1m}}\n";
        fs::write(file.path(), config).unwrap();
        let driver = rig
            .driver(&["--config", file.path().to_str().unwrap(), "--force"])
            .await;
        let before = kib(driver.pid(), "VmRSS:");
        // From here on the system records the peak.
        fs::write(format!("/proc/{}/clear_refs", driver.pid()), "5").unwrap();
        rig.event("drain", DRIVER);
        assert_eq!(rig.end_of("drain").await, "Succeeded", "{}", driver.log());
        let most = kib(driver.pid(), "VmHWM:");
        let grown = (most - before.min(most)) * 1024;
        assert!(
            grown < 100 * MIB,
            "from {before} to {most} KiB, with lists through watches: {watch_list}"
        );
        if !watch_list {
            assert!(driver.log().contains("exceeds 16 MiB"), "{}", driver.log());
        }
    }
}

/// Budgets, attachments, DaemonSets and pods; returns their size.
fn fill(rig: &Rig) -> u64 {
    let text = "x".repeat(OBJECT);
    let note = |object: objects::Object, size: usize| object.annotation("example.com/note", &text[..size]);
    let mut objects = Vec::new();
    for number in 0..60 {
        let name = format!("large-{number}");
        let mut budget = objects::budget("default", &name, &[("app", "none")], 0);
        budget["spec"]["selector"]["matchExpressions"] =
            json!([{"key": "app", "operator": "In", "values": [text]}]);
        objects.push(budget);
        let inline = json!({"csi": {"driver": "csi.example.com", "volumeHandle": text}});
        let attachment = objects::volume_attachment(&name, "elsewhere", &name);
        objects.push(attachment.with("/spec/source/inlineVolumeSpec", inline).build());
        let set = objects::daemon_set("default", &name);
        objects.push(note(set, ANNOTATIONS).build());
        // The kubelet has refused most of these: a pod that names its node needs no scheduler.
        let mut pod = note(objects::pod("default", &name, NODE), ANNOTATIONS).build();
        pod["spec"]["containers"][0]["env"] = json!([{"name": "TEXT", "value": text}]);
        objects.push(pod);
    }
    let orphan = objects::pod("default", "orphan", NODE).daemonset("gone");
    objects.push(orphan.build());
    let size = objects.iter().map(|object| object.to_string().len() as u64).sum();
    for object in objects {
        rig.apply(object);
    }
    size
}
