//! The messages of commands are true, and exit codes do not depend on whether the output is read.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use scupper_simulator::api::objects;
use serde_json::json;

use crate::kubelet_node::{Agent, asks};
use crate::rig::{LIMIT, Rig};

/// The exit code of a run whose output is not read: both pipes are closed at once.
#[track_caller]
fn unread(rig: &Rig, args: &[&str]) -> Option<i32> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(args)
        .env("KUBECONFIG", rig.dir.path().join("kubeconfig"))
        .env_remove("POD_NAME")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("{args:?} does not end");
}

#[test]
fn a_drain_whose_output_is_closed_ends_with_the_same_code() {
    for with_agent in [None, Some(true), Some(false)] {
        let rig = Rig::new();
        let _agent = with_agent.map(|slm| Agent::start(&rig, slm));
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        for output in ["human", "json"] {
            let code = unread(&rig, &asks("drain", &["--timeout", "3s", "--output", output]));
            assert_eq!(code, Some(6), "agent: {with_agent:?}, {output}");
        }
        let run = rig.run(&asks("drain", &["--timeout", "3s"]));
        assert_eq!(run.code, Some(6), "{run:#?}");
        // A drain that has ended shows no deadline.
        for line in run.stdout.lines().filter(|line| line.contains("  event    ")) {
            let over = ["Failed", "SlaExpired"].iter().any(|state| line.contains(state));
            assert!(!(over && line.contains("to end within")), "{run:#?}");
        }
    }
}

#[test]
fn a_node_that_is_not_ready_is_called_so() {
    for agent in [None, Some(false)] {
        let rig = Rig::new();
        let _agent = agent.map(|slm| Agent::start(&rig, slm));
        let ready = json!({
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        rig.apply(objects::node("worker-1").with("/status/conditions", json!([ready])));
        rig.apply(rig.pod("web", "worker-1"));
        let words = "(NodeStatusUnknown: Kubelet stopped posting node status.)";
        let status = rig.run(&["status", "worker-1"]);
        assert!(
            status.stdout.contains("node worker-1: takes pods, NotReady for "),
            "{status:#?}"
        );
        let plan = rig.run(&["plan", "worker-1"]);
        assert!(plan.stdout.contains("node worker-1 (NotReady for "), "{plan:#?}");
        let drain = rig.run(&asks("drain", &[]));
        for run in [&status, &plan, &drain] {
            assert_eq!(run.code, Some(0), "{run:#?}");
            assert!(run.stdout.contains(words), "{run:#?}");
        }
        assert_eq!(drain.stdout.matches("NotReady").count(), 1, "{drain:#?}");
    }
}
