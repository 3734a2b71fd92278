//! `scontrol reboot` before and during a drain.

use serde_json::json;

use crate::driver::node;
use crate::testbed::{NODE, Testbed, until};

fn request_reboot(testbed: &Testbed) {
    let reboot = [
        "scontrol",
        "reboot",
        "ASAP",
        "nextstate=RESUME",
        "reason=new kernel",
        NODE,
    ];
    testbed.client(&reboot);
}

#[tokio::test]
async fn in_driver_mode_a_requested_reboot_comes_first_and_the_node_gets_no_job_afterwards() {
    let Some(testbed) = Testbed::up("reboot", &[]) else {
        return;
    };
    let mut driver = node(&testbed, &[], json!({}), Vec::new()).await;
    driver.start().await;
    let job = testbed.submit(300, &[]);
    request_reboot(&testbed);
    driver.begin_drain("drain");
    let waits = "waits for slurm-worker-0: reboots by `scontrol reboot`: ";
    driver
        .until("it waits for the reboot", || driver.reported().contains(waits))
        .await;
    let ask = [
        "sbatch",
        "--parsable",
        "--chdir=/tmp",
        "-w",
        NODE,
        "--wrap=sleep 300",
    ];
    let next = testbed.client(&ask).parse().unwrap();
    testbed.client(&["scancel", &job.to_string()]);
    until("the reboot is under way", async || {
        testbed
            .client(&["scontrol", "show", "node", NODE])
            .contains("REBOOT_ISSUED")
    })
    .await;
    assert!(!driver.reported().contains("Drained in"), "{}", driver.reported());
    testbed.daemon(&format!("slurmd-{NODE}"), "reboot");
    // Slurm resumes the node, and may give it this job before the drain follows.
    until("the drain is behind the reboot", async || {
        testbed.node().contains("scupper: node=worker-1 ")
    })
    .await;
    testbed.client(&["scancel", &u64::to_string(&next)]);
    assert_eq!(driver.ends("drain").await, "Succeeded", "{}", driver.reported());
    assert!(
        testbed.node().starts_with("drained scupper: node=worker-1 "),
        "{}",
        testbed.node()
    );
    let events = driver.events("SlurmNodeReboots");
    assert!(
        events.len() == 1 && events[0].contains("new kernel"),
        "{events:?}"
    );
    assert!(driver.events("SlurmNodeFoundDrained").is_empty());
    assert_eq!(
        driver.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        driver.reported()
    );
    until("it is idle", async || testbed.node().starts_with("idle")).await;
}
