//! What Slurm does at an outage after the uncordon, and machines that are off.

use serde_json::{Value, json};

use crate::driver::{WORKER, is_off, node};
use crate::driver_mode::DriverMode;
use crate::testbed::{NODE, Testbed, until};

/// The node is DOWN because its `slurmd` is silent.
async fn goes_down(testbed: &Testbed) {
    testbed.daemon(&format!("slurmd-{NODE}"), "kill");
    until("the node is down", async || {
        let state = testbed.client(&["scontrol", "show", "node", NODE]);
        // With so short a timeout Slurm may set it down before it knows that it is silent.
        ["State=DOWN", "NOT_RESPONDING", "Not responding"]
            .iter()
            .all(|part| state.contains(part))
    })
    .await;
}

/// Once `slurmd` is there again, the node takes jobs.
async fn returns(testbed: &Testbed) {
    testbed.daemon(&format!("slurmd-{NODE}"), "start");
    until("the node is back", async || testbed.node().starts_with("idle ")).await;
}

/// After a drain and its uncordon.
async fn drained_and_given_back(testbed: &Testbed) -> DriverMode {
    let mut driver = node(testbed, &[], json!({}), Vec::new()).await;
    driver.start().await;
    assert_eq!(driver.drain("drain").await, "Succeeded", "{}", driver.reported());
    let uncordon = driver.uncordon("uncordon").await;
    assert_eq!(uncordon, "Succeeded", "{}", driver.reported());
    driver
}

/// With accounting, or from Slurm 26.05 on, nothing of the drain remains. Both are usual.
#[tokio::test]
async fn in_driver_mode_the_node_returns_from_each_outage_after_its_uncordon() {
    for (name, option) in [
        ("accounting", &["--accounting"][..]),
        ("newer", &["--suite", "forky"]),
    ] {
        let options = [&["--slurmd-timeout", "4"], option].concat();
        let Some(testbed) = Testbed::up(name, &options) else {
            return;
        };
        let _driver = drained_and_given_back(&testbed).await;
        until("it is idle", async || testbed.node() == "idle none").await;
        for _ in 0..2 {
            goes_down(&testbed).await;
            returns(&testbed).await;
        }
    }
}

#[tokio::test]
async fn in_driver_mode_after_an_uncordon_and_a_job_the_node_returns_from_its_next_outage() {
    let Some(testbed) = Testbed::up("next-outage", &["--slurmd-timeout", "4"]) else {
        return;
    };
    let driver = drained_and_given_back(&testbed).await;
    until("it is idle", async || testbed.node() == "idle Not responding").await;
    assert!(driver.events("SlurmNodeStaysOut").is_empty());
    // Nothing else removes a reason.
    let job = testbed.submit(300, &[]);
    testbed.client(&["scancel", &job.to_string()]);
    until("it is idle", async || testbed.node() == "idle none").await;
    goes_down(&testbed).await;
    returns(&testbed).await;
}

/// Its machine may boot only now, after which Slurm would keep an undrained node down.
#[tokio::test]
async fn in_driver_mode_an_uncordon_waits_until_slurmd_has_registered() {
    for (name, comes) in [("early-uncordon", "start"), ("late-boot", "reboot")] {
        let Some(testbed) = Testbed::up(name, &["--slurmd-timeout", "4"]) else {
            return;
        };
        let mut driver = node(&testbed, &[], json!({}), Vec::new()).await;
        driver.start().await;
        assert_eq!(driver.drain("drain").await, "Succeeded", "{}", driver.reported());
        goes_down(&testbed).await;
        driver.begin_uncordon("uncordon");
        driver
            .until("it waits for slurmd", || {
                driver.reported().contains("the undrain waits for its slurmd")
            })
            .await;
        testbed.daemon(&format!("slurmd-{NODE}"), comes);
        assert_eq!(
            driver.ends("uncordon").await,
            "Succeeded",
            "{}",
            driver.reported()
        );
        until("it takes jobs", async || testbed.node().starts_with("idle ")).await;
        assert!(driver.events("SlurmNodeStaysOut").is_empty());
    }
}

#[tokio::test]
async fn in_driver_mode_an_uncordon_that_has_waited_long_enough_lets_a_slurmd_without_boot_return() {
    let Some(testbed) = Testbed::up("silent-uncordon", &["--slurmd-timeout", "12"]) else {
        return;
    };
    let config = [("registration-timeout", "1s")];
    let mut driver = node(&testbed, &config, json!({}), Vec::new()).await;
    driver.start().await;
    assert_eq!(driver.drain("drain").await, "Succeeded", "{}", driver.reported());
    testbed.daemon(&format!("slurmd-{NODE}"), "kill");
    let shown = || testbed.client(&["scontrol", "show", "node", NODE]);
    until("the node is silent", async || shown().contains("NOT_RESPONDING")).await;
    // It waits until the node is DOWN.
    assert_eq!(
        driver.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        driver.reported()
    );
    let state = shown();
    assert!(
        state.contains("State=DOWN") && state.contains("Reason=Not responding ["),
        "{state}"
    );
    assert_eq!(driver.events("SlurmNodeSilent").len(), 1);
    assert!(driver.events("SlurmNodeStaysOut").is_empty());
    returns(&testbed).await;
}

/// The usual order of a maintenance: drain, off for long, boot, uncordon.
#[tokio::test]
async fn in_driver_mode_a_machine_that_was_off_and_has_booted_gets_jobs_after_its_uncordon() {
    let Some(testbed) = Testbed::up("booted", &["--slurmd-timeout", "4"]) else {
        return;
    };
    let mut driver = node(&testbed, &[], json!({}), Vec::new()).await;
    driver.start().await;
    assert_eq!(driver.drain("drain").await, "Succeeded", "{}", driver.reported());
    goes_down(&testbed).await;
    testbed.daemon(&format!("slurmd-{NODE}"), "reboot");
    let shown = || testbed.client(&["scontrol", "show", "node", NODE]);
    until("it has registered", async || !shown().contains("NOT_RESPONDING")).await;
    assert_eq!(
        driver.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        driver.reported()
    );
    until("it takes jobs", async || testbed.node().starts_with("idle ")).await;
    testbed.submit(300, &[]);
    until("it has a job", async || {
        testbed.node().starts_with("mixed ") || testbed.node().starts_with("allocated ")
    })
    .await;
}

#[tokio::test]
async fn a_machine_that_is_declared_off_is_drained() {
    let Some(testbed) = Testbed::up("off", &["--slurmd-timeout", "4"]) else {
        return;
    };
    let mut driver = node(&testbed, &[], json!({}), Vec::new()).await;
    let edit = |node: &mut Value| node["status"]["conditions"] = json!([is_off()]);
    driver.api.store().edit("nodes", "", WORKER, edit).unwrap();
    goes_down(&testbed).await;
    let without = driver.types(&["drain", WORKER, "--timeout", "8s"]).ended().await;
    assert_ne!(without.code, Some(0), "{without:?}");
    assert!(
        without
            .stdout
            .contains("if the machine is off, drain it with --node-is-off"),
        "{without:?}"
    );
    let with = driver.types(&["drain", WORKER, "--node-is-off"]).ended().await;
    assert_eq!(with.code, Some(0), "{with:?}");
}
