//! Policies in a terminal: the blockers at the end of a drain, a policy's messages at an uncordon, and its remaining
//! undo steps after a `kubectl uncordon`.

use std::fs;

use serde_json::{Value, json};

use crate::guests::guest;
use crate::kubelet_node::{Agent, asks, until};
use crate::rig::Rig;

const REASON: &str = "StaysDrained";
const SAYS: &str = "slurm: warning: the node stays drained elsewhere: ticket 7";

/// A configuration with the policy `slurm`; `more`: lines of its `config`.
fn config(rig: &Rig, more: &str) -> String {
    let file = rig.dir.path().join("scupper.yaml");
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1
kind: Configuration
policies:
  - name: slurm
    module: {}
    grants: {{node-annotations: [seen.example.com/], events: [node]}}
    config: {{{more}}}
",
        guest("surrounded").display()
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The file is a driver's, and names policies in its image.
#[test]
fn a_policy_of_the_drivers_image_is_taken_from_beside_the_configuration() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let file = config(&rig, "");
    let here = guest("surrounded");
    let text = fs::read_to_string(&file).unwrap();
    let of_image = "/usr/share/scupper/policies/of-a-test.wasm";
    fs::write(&file, text.replace(here.to_str().unwrap(), of_image)).unwrap();
    let run = rig.run(&["plan", "worker-1", "--config", &file]);
    assert_eq!(run.code, Some(3), "{run:#?}");
    let beside = rig.dir.path().join("of-a-test.wasm");
    let words = format!(
        "policy slurm: neither {of_image} nor {} exists; ",
        beside.display()
    );
    assert!(run.stderr.contains(&words), "{run:#?}");
    fs::copy(here, beside).unwrap();
    let run = rig.run(&["plan", "worker-1", "--config", &file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
}

fn kubectl_uncordon(rig: &Rig) {
    let edit = |node: &mut Value| node["spec"]["unschedulable"] = json!(false);
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
}

fn event_count(rig: &Rig) -> usize {
    let events = rig.objects("events.events.k8s.io").into_iter();
    events.filter(|event| event["reason"] == REASON).count()
}

const WAITED: &str = "the deadline passed while policy slurm reported: jobs run; waits for job 21 (on slurm-worker-3); no pod was asked to leave";

fn is_quiet(status: &str) {
    for words in [", running for", "Ctrl-C", "scupper cancel", "to cancel the drain"] {
        assert!(!status.contains(words), "{words}: {status}");
    }
}

#[test]
fn the_end_names_the_drains_blockers_and_status_shows_no_running_hook() {
    let rig = Rig::new();
    let file = config(&rig, "waits: \"job 21|on slurm-worker-3\"");
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&[
        "drain",
        "worker-1",
        "--local",
        "--timeout",
        "3s",
        "--config",
        &file,
    ]);
    assert_eq!(run.code, Some(6), "{run:#?}");
    assert!(run.stdout.contains(WAITED), "{run:#?}");
    assert_eq!(rig.pods(), ["web"]);
    let node = rig.node("worker-1");
    let held = &node["metadata"]["annotations"]["seen.example.com/held"];
    assert_eq!(held, "true", "the cordon stays, and so does what the policy did");
    assert!(rig.is_cordoned("worker-1"));
    let status = rig.run(&["status", "worker-1"]).stdout;
    assert!(status.contains(WAITED), "{status}");
    is_quiet(&status);
}

#[test]
fn the_end_of_a_delegated_drain_also_reports_it() {
    for slm in [false, true] {
        let rig = Rig::new();
        let file = config(&rig, "waits: \"job 21|on slurm-worker-3\"");
        let _agent = Agent::with(&rig, slm, &["--config", &file]);
        rig.apply(rig.pod("web", "worker-1"));
        let run = rig.run(&asks("drain", &["--timeout", "3s"]));
        assert_eq!(run.code, Some(6), "{run:#?}");
        assert!(run.stdout.contains(WAITED), "{run:#?}");
        is_quiet(&rig.run(&["status", "worker-1"]).stdout);
    }
}

#[test]
fn a_policys_message_at_an_uncordon_is_one_line_and_one_event() {
    let rig = Rig::new();
    let file = config(&rig, "");
    assert_eq!(
        rig.run(&["drain", "worker-1", "--local", "--config", &file]).code,
        Some(0)
    );
    let run = rig.run(&["uncordon", "worker-1", "--local", "--config", &file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.stdout.matches(SAYS).count(), 1, "{run:#?}");
    assert_eq!(event_count(&rig), 1);
}

#[test]
fn a_policys_message_at_a_delegated_uncordon_reaches_the_terminal() {
    for slm in [false, true] {
        let rig = Rig::new();
        let file = config(&rig, "");
        let _agent = Agent::with(&rig, slm, &["--config", &file]);
        assert_eq!(rig.run(&asks("drain", &[])).code, Some(0));
        let run = rig.run(&asks("uncordon", &[]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert_eq!(run.stdout.matches(SAYS).count(), 1, "{run:#?}");
        assert_eq!(event_count(&rig), 1);
    }
}

/// A driver's node with the label of the cordon trigger: the driver calls the policies itself.
#[test]
fn a_driver_undoes_after_a_kubectl_uncordon() {
    let rig = Rig::new();
    let file = config(&rig, "");
    let label = |node: &mut Value| node["metadata"]["labels"]["scupper.dev/drain-on-cordon"] = json!("true");
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", label))
        .unwrap();
    let _agent = Agent::with(&rig, false, &["--config", &file]);
    assert_eq!(rig.run(&asks("drain", &[])).code, Some(0));
    kubectl_uncordon(&rig);
    until("its policies have been called", || {
        event_count(&rig) == 1 && rig.mark("worker-1").is_none()
    });
    assert!(!rig.run(&["status", "worker-1"]).stdout.contains("undo"));
}
