//! Two Kubernetes clusters, or two nodes, that share one Slurm.

use scupper_engine::HookPhase;
use serde_json::{Value, json};

use crate::driver::{WORKER, node, policies};
use crate::driver_mode::DriverMode;
use crate::rig::Rig;
use crate::testbed::{NODE, Testbed, until};

const OTHER: &str = "slurm-worker-1";

fn state_of(testbed: &Testbed, node: &str) -> String {
    testbed.client(&["sinfo", "-h", "-N", "-n", node, "-o", "%T %E"])
}

/// The beginning of the reasons of this node's drains: this cluster is known by the UID of its namespace kube-system.
fn reason_of_node(ours: &DriverMode) -> String {
    let namespace = ours.api.store().get("namespaces", "", "kube-system").unwrap();
    let uid = namespace["metadata"]["uid"].as_str().unwrap();
    format!("scupper: node={WORKER} cluster={uid} drain=")
}

#[tokio::test]
async fn an_uncordon_leaves_the_node_of_that_name_in_another_cluster_drained() {
    let Some(testbed) = Testbed::up("clusters", &[]) else {
        return;
    };
    let table = format!("worker-1={OTHER}");
    let config = [("cluster", "elsewhere"), ("slurm-node-table", table.as_str())];
    let theirs = Rig::load(&testbed, &config).await;
    theirs.done(HookPhase::BeforeCordon).await;
    let drained = state_of(&testbed, OTHER);
    assert!(
        drained.starts_with("drained scupper: node=worker-1 cluster=elsewhere "),
        "{drained}"
    );
    let mut ours = node(&testbed, &[], json!({}), Vec::new()).await;
    ours.start().await;
    assert_eq!(ours.drain("drain").await, "Succeeded", "{}", ours.reported());
    let reason = format!("drained {}", reason_of_node(&ours));
    assert!(testbed.node().starts_with(&reason), "{}", testbed.node());
    assert_eq!(
        ours.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        ours.reported()
    );
    until("ours is idle", async || testbed.node().starts_with("idle")).await;
    assert_eq!(state_of(&testbed, OTHER), drained);
}

#[tokio::test]
async fn two_nodes_for_one_slurm_node_are_refused() {
    let Some(testbed) = Testbed::up("one-for-two", &[]) else {
        return;
    };
    let first = Rig::load(&testbed, &[]).await;
    first.done(HookPhase::BeforeCordon).await;
    let drained = testbed.node();
    // Another node of Kubernetes with the same label; here it is one of another cluster.
    let config = [
        ("slurm-node", "label:example.com/slurm"),
        ("slurm-node-table", ""),
        ("cluster", "elsewhere"),
    ];
    let mut second = Rig::load(&testbed, &config).await;
    let words = format!(
        "{NODE} is drained in Slurm for another Kubernetes node: scupper: node={WORKER} cluster=testbed"
    );
    second.fails(HookPhase::BeforeCordon, true, &words).await;
    second.another("uncordon-uid");
    second.done(HookPhase::AfterUncordon).await;
    assert_eq!(testbed.node(), drained);
}

/// By their labels, two nodes of this cluster are one Slurm node.
#[tokio::test]
async fn in_driver_mode_a_slurm_node_that_another_node_of_this_cluster_has_drained_is_left_alone() {
    let Some(testbed) = Testbed::up("one-label", &[]) else {
        return;
    };
    let by_label = [
        ("slurm-node", "label:example.com/slurm"),
        ("slurm-node-table", ""),
    ];
    let mut ours = node(&testbed, &by_label, json!({}), Vec::new()).await;
    let label = |node: &mut Value| node["metadata"]["labels"]["example.com/slurm"] = json!(NODE);
    ours.api.store().edit("nodes", "", WORKER, label).unwrap();
    let theirs = reason_of_node(&ours).replace(&format!("node={WORKER} "), "node=worker-2 ");
    let (name, reason) = (format!("NodeName={NODE}"), format!("Reason={theirs}other"));
    testbed.client(&["scontrol", "update", &name, "State=DRAIN", &reason]);
    let drained = format!("drained {theirs}other");
    ours.start().await;
    assert_eq!(ours.drain("drain").await, "Failed", "{}", ours.reported());
    let why = format!("{NODE} is drained in Slurm for another Kubernetes node: scupper: node=worker-2 ");
    assert!(ours.reported().contains(&why), "{}", ours.reported());
    assert_eq!(
        ours.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        ours.reported()
    );
    assert_eq!(testbed.node(), drained);
}

#[tokio::test]
async fn in_driver_mode_a_slurm_node_that_is_drained_for_another_node_refuses_the_drain() {
    let Some(testbed) = Testbed::up("shared-driver", &[]) else {
        return;
    };
    let theirs = Rig::load(&testbed, &[]).await;
    theirs.done(HookPhase::BeforeCordon).await;
    let drained = testbed.node();
    let mut ours = node(&testbed, &[], json!({}), Vec::new()).await;
    let doctor = ours.types(&["doctor", "--node", WORKER]).ended().await;
    let fix = "uncordon that node, or correct `slurm-node`: two nodes cannot share one Slurm node";
    assert!(doctor.stdout.contains(fix), "{doctor:?}");
    ours.start().await;
    assert_eq!(ours.drain("drain").await, "Failed", "{}", ours.reported());
    let why = format!(
        "{NODE} is drained in Slurm for another Kubernetes node: scupper: node={WORKER} cluster=testbed"
    );
    assert!(ours.reported().contains(&why), "{}", ours.reported());
    assert!(!ours.is_cordoned());
    // A former table named another Slurm node for this one.
    let former = format!("{}old", reason_of_node(&ours));
    let (name, reason) = (format!("NodeName={OTHER}"), format!("Reason={former}"));
    testbed.client(&["scontrol", "update", &name, "State=DRAIN", &reason]);
    assert_eq!(
        ours.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        ours.reported()
    );
    assert_eq!(testbed.node(), drained);
    assert_eq!(state_of(&testbed, OTHER), format!("drained {former}"));
    let stays = ours.events("SlurmNodeStaysOut");
    let unmapped = format!("a drain of {WORKER} drained it, but `slurm-node` no longer names it");
    assert!(stays.iter().any(|note| note.contains(&unmapped)), "{stays:?}");
    // A table with one Slurm node for two nodes is not even loaded.
    let table = format!("{WORKER}={NODE},worker-2={NODE}");
    ours.configure(
        json!({}),
        policies(&testbed, &[("slurm-node-table", table.as_str())]),
    );
    let both = format!("{WORKER} and worker-2 cannot both be {NODE}");
    ours.until("the driver keeps the former one", || {
        ours.reported().contains(&both)
    })
    .await;
    for args in [
        &["doctor", "--node", WORKER][..],
        &["kubelet-plugin", "--node-name", WORKER],
    ] {
        let ended = ours.types(args).ended().await;
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert!(format!("{ended:?}").contains(&both), "{ended:?}");
    }
}
