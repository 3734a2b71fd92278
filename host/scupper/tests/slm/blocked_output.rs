//! A driver whose output has no reader still drains.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::objects::closed_budget;
use crate::rig::{DRIVER, LIMIT, NODE, Rig};

#[tokio::test]
async fn an_unread_log_stops_no_drain() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    rig.apply(closed_budget());
    let before = rig.registrations();
    // A pipe holds 64 KiB; at this level the driver has logged that much before it is registered.
    let mut driver = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(["kubelet-plugin", "--driver-name", DRIVER, "--node-name", NODE])
        .arg("--kubelet-root")
        .arg(rig.kubelet.root())
        .arg("--kubeconfig")
        .arg(rig.kubeconfig())
        .env("SCUPPER_LOG", "trace")
        .env_remove("POD_NAME")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = (driver.stdout.take(), driver.stderr.take());
    rig.until("the driver is registered", || rig.registrations() > before)
        .await;
    rig.until("its transition is there", || rig.get_transition(DRIVER).is_some())
        .await;
    rig.event("drain", DRIVER);
    rig.until("the budget refuses", || !rig.evictions().is_empty())
        .await;
    rig.delete_budget();
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
    // A signal also ends it.
    kill_process(Pid::from_child(&driver), Signal::TERM).unwrap();
    let begun = std::time::Instant::now();
    let status = loop {
        if let Some(status) = driver.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > LIMIT {
            driver.kill().unwrap();
            panic!("it does not end");
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(status.code(), Some(0));
    drop(unread);
}
