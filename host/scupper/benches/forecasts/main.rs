//! How long `scupper forecast` takes for many nodes of a cluster in a file, and what memory.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark stops at what it did not expect, and prints"
)]

#[path = "../support/memory.rs"]
mod memory;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};

const PODS: usize = 110;
/// Pods of a Deployment, each on another node where there are enough; each Deployment has a budget and a Service.
const REPLICAS: usize = 55;
/// Between two looks at the program.
const POLL: Duration = Duration::from_millis(10);

fn main() {
    // `cargo test --benches` only checks that it starts.
    let sizes: &[usize] = if std::env::args().any(|arg| arg == "--test") {
        &[2]
    } else {
        &[1, 10, 50, 100, 1000]
    };
    let folder = tempfile::tempdir().unwrap();
    println!("{:>5} {:>10} {:>10} {:>10}", "nodes", "file", "took", "most RSS");
    for nodes in sizes {
        let file = folder.path().join("cluster.json");
        write(&file, *nodes);
        let size = file.metadata().unwrap().len() >> 20;
        let begun = Instant::now();
        let memory = forecast(&file);
        let took = begun.elapsed().as_secs_f64();
        println!("{nodes:>5} {size:>6} MiB {took:>8.1} s {:>6} MiB", memory >> 10);
    }
}

/// All nodes of the file. The most memory that it had, in KiB.
fn forecast(file: &Path) -> u64 {
    let mut program = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(["forecast", "-l", "pool=bench", "--from"])
        .arg(file)
        .arg("--recordings")
        .arg(file.parent().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut most = 0;
    let ended = loop {
        most = most.max(memory::kib(program.id(), "VmHWM:").unwrap_or_default());
        if let Some(ended) = program.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(POLL);
    };
    assert!(ended.success(), "{ended}");
    most
}

/// As `kubectl get nodes,pods,replicasets,pdb,services -A -o json` prints it, with fewer fields.
fn write(file: &Path, nodes: usize) {
    let mut file = BufWriter::new(File::create(file).unwrap());
    let of = |kind: &str, version: &str, name: String| {
        json!({"apiVersion": version, "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "uid": uid(kind, &name)}})
    };
    let deployments = (nodes * PODS).div_ceil(REPLICAS);
    let names = || (0..nodes).map(|number| format!("node-{number}"));
    let of_nodes = names().map(|name| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": uid("Node", &name), "labels": {"pool": "bench"}},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"},
                "conditions": [{"type": "Ready", "status": "True"}]}})
    });
    let of_deployments = (0..deployments).flat_map(|number| {
        let labels = json!({"app": format!("app-{number}")});
        let mut replicas = of("ReplicaSet", "apps/v1", format!("app-{number}-5d4f"));
        replicas["spec"] = json!({"replicas": REPLICAS, "selector": {"matchLabels": labels}});
        let mut budget = of("PodDisruptionBudget", "policy/v1", format!("app-{number}"));
        budget["spec"] = json!({"maxUnavailable": 5, "selector": {"matchLabels": labels}});
        budget["status"] = json!({"disruptionsAllowed": 5, "currentHealthy": REPLICAS, "desiredHealthy": REPLICAS - 5,
            "expectedPods": REPLICAS, "observedGeneration": 1});
        let mut service = of("Service", "v1", format!("app-{number}"));
        service["spec"] = json!({"selector": labels});
        [replicas, budget, service]
    });
    let of_pods = (0..nodes * PODS).map(|number| {
        let deployment = number % deployments;
        let owner = format!("app-{deployment}-5d4f");
        let mut pod = of("Pod", "v1", format!("{owner}-{number}"));
        pod["metadata"]["labels"] = json!({"app": format!("app-{deployment}"), "pod-template-hash": "5d4f"});
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner,
            "uid": uid("ReplicaSet", &owner), "controller": true}]);
        pod["spec"] = json!({"nodeName": format!("node-{}", number / PODS), "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}}}]});
        pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        pod
    });
    write!(file, r#"{{"apiVersion":"v1","kind":"List","items":["#).unwrap();
    let objects = of_nodes.chain(of_deployments).chain(of_pods);
    for (number, object) in objects.enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(file, "{comma}\n{object}").unwrap();
    }
    writeln!(file, "]}}").unwrap();
}

/// Always the same one, which differs from others in the first bytes, as those of an API server.
fn uid(kind: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{kind}/{name}"));
    let [a, b, c, d, ..]: [u8; 32] = digest.into();
    format!(
        "{:08x}-0000-4000-8000-000000000000",
        u32::from_be_bytes([a, b, c, d])
    )
}
