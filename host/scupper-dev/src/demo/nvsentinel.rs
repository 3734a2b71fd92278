//! `scupper demo --nvsentinel`: one of three GPUs fails. NVSentinel's node-drainer requests a drain of the pods of that
//! GPU, then of the whole node.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scupper_simulator::api::{Store, StoreError, objects};
use serde_json::{Value, json};

use super::DemoOutput;
use super::cluster_objects::{self, NODE, annotate};
use super::demo_cluster::{AbortOnDrop, DemoCluster, DemoError};
use super::node_drainer::{self, HealthEvent, NodeDrainer};
use scupper_driver::{PoliciesOptions, chain};
use scupper_policy_reload::PolicySource;

const FAILED_GPU: &str = "GPU-22bb";
const CONFIG: &str = include_str!("nvsentinel.yaml");
/// The annotation that names a pod's GPUs.
const DEVICES: &str = "dgxc.nvidia.com/devices";
const POLL: Duration = Duration::from_millis(50);
/// How long a workload still needs to finish.
const WORK: Duration = Duration::from_secs(3);

/// What each pod of the node has: namespace, name, GPU.
const PODS: [(&str, &str, Option<&str>); 7] = [
    ("gpu-operator", "device-plugin-x7k2p", None),
    ("notebooks", "alice-0", Some(FAILED_GPU)),
    ("research", "finetune-0", Some("GPU-33cc")),
    ("serving", "chat-0", Some("GPU-11aa")),
    ("serving", "search-0", Some(FAILED_GPU)),
    ("training", "pretrain-0", Some(FAILED_GPU)),
    ("web", "dashboard-0", None),
];

const ONE_GPU: HealthEvent = HealthEvent {
    id: "68a1",
    check: "GpuXidError",
    code: "48",
    action: "COMPONENT_RESET",
    reason: "double-bit ECC error",
    entities: &[("GPU_UUID", FAILED_GPU)],
};

const WHOLE_NODE: HealthEvent = HealthEvent {
    id: "68a2",
    check: "GpuXidError",
    code: "79",
    action: "RESTART_BM",
    reason: "the GPU has fallen off the bus",
    entities: &[("GPU_UUID", FAILED_GPU)],
};

/// Runs the demo. `policies`: the folder with their components.
pub(super) async fn run(policies: &Path, output: &DemoOutput) -> Result<(), DemoError> {
    let cluster = cluster_objects::cluster_with(vec![node_drainer::kind()]).await?;
    let store = cluster.store();
    build(&store).map_err(DemoError::Scene)?;
    let say = output.speaker();
    say(&format!(
        "A simulated cluster with NVSentinel: node {NODE} has three GPUs, and three pods share one of them. The driver and the"
    ));
    say("policies are the real ones.\n\n$ cat scupper.yaml");
    for line in CONFIG.lines() {
        say(&format!("            {line}"));
    }
    let options = PoliciesOptions {
        source: Some(source(policies)),
        ..PoliciesOptions::default()
    };
    let demo_cluster = DemoCluster::set(cluster, NODE, options, output).await?;
    let _workloads = AbortOnDrop(tokio::spawn(workloads(store.clone(), say.clone())));
    let node_drainer = NodeDrainer { store, say };
    scenes(&demo_cluster, &node_drainer).await?;
    demo_cluster.clear().await
}

async fn scenes(
    demo_cluster: &DemoCluster,
    node_drainer: &NodeDrainer<impl Fn(&str)>,
) -> Result<(), DemoError> {
    let NodeDrainer { store, say } = node_drainer;
    show_pods(store, say);
    say(&format!(
        "\nThe GPU {FAILED_GPU} fails.\n\n$ kubectl cordon {NODE}    # fault-quarantine"
    ));
    node_drainer::quarantine(store)?;
    let mark = demo_cluster.mark();
    node_drainer.drain(&ONE_GPU).await?;
    say(&demo_cluster.requests(mark));
    node_drainer.finish(&ONE_GPU);
    show_pods(store, say);
    say(&format!(
        "\n{FAILED_GPU} has been reset, which did not help: the machine must restart."
    ));
    node_drainer.drain(&WHOLE_NODE).await?;
    node_drainer.finish(&WHOLE_NODE);
    show_pods(store, say);
    say(&format!(
        "\n{NODE} stays cordoned: the cordon is fault-quarantine's. On a cluster: deploy/overlays/nvsentinel, and these policies."
    ));
    Ok(())
}

/// The configuration, with modules from this folder.
fn source(policies: &Path) -> PolicySource {
    let file = policies.join("scupper.yaml");
    let read = move || {
        let read = scupper_config::read_text(&file, CONFIG);
        let desired = read.map(scupper::desired_policies);
        desired.map_err(|error| chain(&error))
    };
    PolicySource {
        read: Arc::new(read),
        ..PolicySource::fixed(Vec::new())
    }
}

fn build(store: &Store) -> Result<(), StoreError> {
    let others = [
        // Never allows an eviction.
        objects::budget("notebooks", "alice", &[("app", "alice")], 1),
        // After its pod, or it would create another.
        objects::daemon_set("gpu-operator", "device-plugin").build(),
    ];
    [objects::node(NODE).build()]
        .into_iter()
        .chain(PODS.map(built))
        .chain(others)
        .try_for_each(|object| store.apply(object).map(drop))
}

fn built((namespace, name, gpu): (&str, &str, Option<&str>)) -> Value {
    let pod = objects::pod(namespace, name, NODE);
    let workload = name.split('-').next().unwrap_or(name);
    let pod = match namespace {
        "gpu-operator" => pod.daemonset("device-plugin"),
        "training" => pod.owner_statefulset(workload).completes(3600.0),
        "research" => pod.job(workload).annotation(&checkpoint("supported"), "1m"),
        "notebooks" => pod.owner_statefulset(workload),
        _ => pod.owner_replicaset(workload),
    };
    let Some(gpu) = gpu else { return pod.build() };
    let devices = json!({"devices": {"nvidia.com/gpu": [gpu]}});
    pod.annotation(DEVICES, &devices.to_string()).build()
}

/// Plays the workloads: a training ends some time after another pod is gone, and a job saves a checkpoint once it is asked.
async fn workloads(store: Store, say: impl Fn(&str)) {
    while store.get("pods", "notebooks", "alice-0").is_some() {
        tokio::time::sleep(POLL).await;
    }
    tokio::time::sleep(WORK).await;
    say("            (training/pretrain-0 has finished)");
    set(&store, ("training", "pretrain-0"), "testbed/completes", "0");
    let id = loop {
        let pod = store.get("pods", "research", "finetune-0");
        let requested = pod.and_then(|pod| {
            let annotations = pod.pointer("/metadata/annotations")?;
            Some(annotations.get(checkpoint("requested"))?.as_str()?.to_owned())
        });
        match requested {
            Some(id) => break id,
            None => tokio::time::sleep(POLL).await,
        }
    };
    say("            (research/finetune-0 is asked for a checkpoint)");
    // It takes longer than the pods of earlier waves, also on a busy machine.
    while !node_drainer::is_deferred(&store) {
        tokio::time::sleep(POLL).await;
    }
    tokio::time::sleep(WORK).await;
    say("            (research/finetune-0 has saved a checkpoint)");
    set(&store, ("research", "finetune-0"), &checkpoint("done"), &id);
}

fn set(store: &Store, (namespace, name): (&str, &str), key: &str, value: &str) {
    // It may be gone by now.
    let _gone = store.edit("pods", namespace, name, |pod| annotate(pod, key, value));
}

/// An annotation of the checkpoint handshake.
fn checkpoint(name: &str) -> String {
    format!("checkpoint.example.com/{name}")
}

/// The node's pods with their GPUs.
fn show_pods(store: &Store, say: &impl Fn(&str)) {
    let mut text = format!("\n$ kubectl get pods -A --field-selector spec.nodeName={NODE}");
    let on_node = |namespace: &str, name: &str| store.get("pods", namespace, name).is_some();
    for (namespace, name, gpu) in PODS
        .into_iter()
        .filter(|(namespace, name, _)| on_node(namespace, name))
    {
        let pod = format!("{namespace}/{name}");
        text.push_str(&format!("\n            {pod:<34} {}", gpu.unwrap_or("-")));
    }
    say(&text);
}
