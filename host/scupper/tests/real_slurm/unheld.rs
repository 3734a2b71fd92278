//! `hold: slurm-pods` on a node with jobs and without a Slurm pod that leaves.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::driver::{WORKER, node};
use crate::testbed::Testbed;

/// `slurmd` runs on the host, or its pod has another label.
fn other_pods() -> Vec<Value> {
    let pod = |namespace, name| objects::pod(namespace, name, WORKER).owner_replicaset(name);
    vec![
        pod("shop", "cart").build(),
        pod("slurm", "slurmd-x").label("app", "slurmd").build(),
    ]
}

#[tokio::test]
async fn in_driver_mode_the_drain_is_refused_before_any_change_and_the_doctor_warns() {
    let Some(testbed) = Testbed::up("unheld", &[]) else {
        return;
    };
    let mut rig = node(&testbed, &[("hold", "slurm-pods")], json!({}), other_pods()).await;
    let doctor = rig.types(&["doctor", "--node", WORKER]).ended().await;
    let warns = "the node has no pod with the labels of `label`; with `hold: slurm-pods` jobs of slurm-worker-0 are \
                 awaited before such pods leave; its drains are refused while it has jobs";
    assert!(doctor.stdout.contains(warns), "{doctor:?}");
    rig.start().await;
    let job = testbed.submit(300, &[]);
    assert_eq!(rig.drain("drain").await, "Failed", "{}", rig.reported());
    let why = "no pod with the labels of `label` leaves worker-1: correct `label` and `namespace`, or set `no-slurm-pods` to \
               `hold`";
    assert!(rig.reported().contains(why), "{}", rig.reported());
    assert!(!rig.is_cordoned() && !rig.reported().contains("evict    "));
    assert_eq!(
        (testbed.job(job).as_str(), testbed.node().as_str()),
        ("RUNNING", "mixed none")
    );
}

#[tokio::test]
async fn in_driver_mode_the_whole_node_is_held_without_a_slurm_pod_if_configured() {
    let Some(testbed) = Testbed::up("unheld-hold", &[]) else {
        return;
    };
    let config = [("hold", "slurm-pods"), ("no-slurm-pods", "hold")];
    let mut rig = node(&testbed, &config, json!({}), other_pods()).await;
    rig.start().await;
    let job = testbed.submit(300, &[]);
    rig.begin_drain("drain");
    let waits = format!("waits for job {job}: ");
    rig.until("it waits", || rig.reported().contains(&waits)).await;
    assert!(!rig.reported().contains("evict    "), "{}", rig.reported());
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(rig.ends("drain").await, "Succeeded", "{}", rig.reported());
}
