//! Slurm is looked at again while the pods leave, and before the end.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::driver::{WORKER, node, slurm_pod};
use crate::testbed::{NODE, Testbed};

const RESUMED: &str = "an operator resumed slurm-worker-0 in Slurm; drain it there again";

fn update(testbed: &Testbed, what: &[&str]) {
    let name = format!("NodeName={NODE}");
    testbed.client(&[&["scontrol", "update", name.as_str()], what].concat());
}

/// Before the end, and with Slurm's own pods before their wave.
#[tokio::test]
async fn in_driver_mode_a_node_that_an_operator_resumes_during_the_evictions_is_not_called_drained() {
    resumed_during_evictions("resumed-late", Vec::new()).await;
    resumed_during_evictions("resumed-before-wave", vec![slurm_pod("slurmd-0")]).await;
}

async fn resumed_during_evictions(name: &str, more: Vec<Value>) {
    let Some(testbed) = Testbed::up(name, &[]) else {
        return;
    };
    let pod = objects::pod("shop", "slow", WORKER)
        .owner_replicaset("slow")
        .takes(4.0);
    let mut rig = node(&testbed, &[], json!({}), [vec![pod.build()], more].concat()).await;
    rig.start().await;
    rig.begin_drain("drain");
    rig.until("the pod is asked to leave", || {
        rig.reported().contains("evict    shop/slow")
    })
    .await;
    update(&testbed, &["State=RESUME"]);
    let job = testbed.submit(300, &[]);
    rig.until("it waits for the operator", || rig.reported().contains(RESUMED))
        .await;
    for early in ["Drained in", "evict    slurm/"] {
        assert!(!rig.reported().contains(early), "{early}: {}", rig.reported());
    }
    assert_eq!(testbed.job(job), "RUNNING");
    assert!(
        testbed.node().starts_with("mixed"),
        "it is not overridden: {}",
        testbed.node()
    );
    assert_eq!(rig.events("SlurmNodeResumed").len(), 1);
    update(&testbed, &["State=DRAIN", "Reason=as it was"]);
    let waits = format!("waits for job {job}: ");
    rig.until("it waits for the job", || rig.reported().contains(&waits))
        .await;
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(rig.ends("drain").await, "Succeeded", "{}", rig.reported());
    assert_eq!(testbed.node(), "drained as it was");
}

#[tokio::test]
async fn in_driver_mode_an_operator_who_resumes_the_node_before_the_wave_of_slurm_pods_is_not_overridden() {
    // With accounting a resume also removes the reason.
    let Some(testbed) = Testbed::up("resumed-wave", &["--accounting"]) else {
        return;
    };
    let slow = objects::pod("shop", "slow", WORKER)
        .owner_replicaset("slow")
        .takes(4.0);
    let pods = vec![slow.build(), slurm_pod("slurmd-0")];
    // The other pods leave without a look at Slurm.
    let mut rig = node(&testbed, &[("hold", "slurm-pods")], json!({}), pods).await;
    rig.start().await;
    rig.begin_drain("drain");
    rig.until("the pod is asked to leave", || {
        rig.reported().contains("evict    shop/slow")
    })
    .await;
    update(&testbed, &["State=RESUME"]);
    let job = testbed.submit(300, &[]);
    rig.until("it waits for the operator", || rig.reported().contains(RESUMED))
        .await;
    assert!(!rig.reported().contains("evict    slurm/"), "{}", rig.reported());
    assert_eq!(testbed.job(job), "RUNNING");
    assert_eq!(testbed.node(), "mixed none");
    update(&testbed, &["State=DRAIN", "Reason=as it was"]);
    testbed.client(&["scancel", &job.to_string()]);
    assert_eq!(rig.ends("drain").await, "Succeeded", "{}", rig.reported());
    assert_eq!(testbed.node(), "drained as it was");
}
