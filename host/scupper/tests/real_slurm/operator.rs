//! `way: operator`. The test plays slurm-operator: it drains and undrains the real Slurm node as the cordon of the Kubernetes
//! node says, and copies the states into the pod's conditions.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::driver::{WORKER, is_off};
use crate::driver_mode::DriverMode;
use crate::rig::module;
use crate::testbed::{NODE, Testbed, until};

const REASON: &str = "nodeset.slinky.slurm.net/node-cordon-reason";
const POD: &str = "slurmd-0";

fn policy(more: &[(&str, &str)]) -> Value {
    let mut config = json!({"poll-seconds": "1"});
    for (key, value) in more {
        config[*key] = json!(value);
    }
    json!([{
        "name": "slurm", "module": module(), "config": config,
        "grants": {"node-annotations": ["nodeset.slinky.slurm.net/"]},
    }])
}

/// The node with a Slurm pod and a pod that needs four seconds to leave.
async fn rig(more: &[(&str, &str)]) -> DriverMode {
    let pod = |namespace, name| objects::pod(namespace, name, WORKER).owner_replicaset(name);
    let pods = vec![
        pod("shop", "slow").takes(4.0).build(),
        pod("slurm", POD).slurm(&["Idle"]).build(),
    ];
    DriverMode::new(WORKER, pods, json!({}), policy(more)).await
}

/// One pass of slurm-operator. `drains`: it also drains and undrains. It leaves a foreign reason alone, and Slurm keeps the
/// first reason.
fn reconcile(testbed: &Testbed, driver: &DriverMode, drains: bool) {
    let store = driver.api.store();
    let node = store.get("nodes", "", WORKER).unwrap();
    let is_cordoned = node["spec"]["unschedulable"] == true;
    let shown = testbed.client(&["scontrol", "show", "node", NODE]);
    let field = |name: &str| {
        let rest = shown.split(&format!("{name}=")).nth(1).unwrap_or_default();
        rest.split([' ', '\n']).next().unwrap_or_default().to_owned()
    };
    let states: Vec<String> = field("State").split('+').map(str::to_owned).collect();
    let is_drained = states.iter().any(|state| state == "DRAIN");
    let update = |what: &[&str]| {
        let name = format!("NodeName={NODE}");
        testbed.client(&[&["scontrol", "update", name.as_str()], what].concat());
    };
    if drains && is_cordoned && !is_drained {
        let reason = node["metadata"]["annotations"][REASON]
            .as_str()
            .unwrap_or("cordoned");
        update(&["State=DRAIN", &format!("Reason=slurm-operator: {reason}")]);
    } else if drains && !is_cordoned && is_drained && shown.contains("Reason=slurm-operator: ") {
        update(&["State=UNDRAIN"]);
    }
    let conditions = states.iter().map(|state| {
        let lower = state.to_lowercase();
        let name: String = lower[..1].to_uppercase() + &lower[1..];
        json!({"type": format!("SlurmNodeState{}", name.replace("Not_responding", "NotResponding")), "status": "True"})
    });
    let conditions: Vec<Value> = conditions
        .chain([json!({"type": "Ready", "status": "True"})])
        .collect();
    let edit = |pod: &mut Value| pod["status"]["conditions"] = json!(conditions);
    // The pod may have left.
    store.edit("pods", "slurm", POD, edit).ok();
}

/// Waits while slurm-operator runs.
async fn when(testbed: &Testbed, driver: &DriverMode, drains: bool, what: &str, holds: impl Fn() -> bool) {
    until(what, async || {
        reconcile(testbed, driver, drains);
        holds()
    })
    .await;
}

#[tokio::test]
async fn in_driver_mode_slurm_operators_node_is_looked_at_again_while_pods_leave() {
    let Some(testbed) = Testbed::up("operator", &[]) else {
        return;
    };
    let mut driver = rig(&[]).await;
    driver.start().await;
    let job = testbed.submit(300, &[]);
    driver.begin_drain("drain");
    let waits = format!("waits for slurm/{POD}: mixed: jobs still run");
    when(&testbed, &driver, true, "it waits for the job", || {
        driver.reported().contains(&waits) && testbed.node().starts_with("draining")
    })
    .await;
    assert_eq!(testbed.node(), "draining slurm-operator: [S] [Scupper] drain");
    testbed.client(&["scancel", &job.to_string()]);
    when(&testbed, &driver, true, "a pod is asked to leave", || {
        driver.reported().contains("evict    shop/slow")
    })
    .await;
    testbed.client(&["scontrol", "update", &format!("NodeName={NODE}"), "State=RESUME"]);
    let job = testbed.submit(300, &[]);
    let waits = "mixed: jobs still run, and Slurm no longer drains the node: drain it there again, or cancel this drain";
    when(&testbed, &driver, false, "it waits again", || {
        driver.reported().contains(waits)
    })
    .await;
    assert!(
        !driver.reported().contains("evict    slurm/"),
        "{}",
        driver.reported()
    );
    assert_eq!(testbed.job(job), "RUNNING");
    when(&testbed, &driver, true, "slurm-operator drains it again", || {
        testbed.node().starts_with("draining ")
    })
    .await;
    testbed.client(&["scancel", &job.to_string()]);
    when(&testbed, &driver, true, "it is drained", || {
        driver.reported().contains("Drained in")
    })
    .await;
    assert_eq!(driver.ends("drain").await, "Succeeded", "{}", driver.reported());
    assert_eq!(
        driver.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        driver.reported()
    );
    when(&testbed, &driver, true, "it is idle", || {
        testbed.node().starts_with("idle")
    })
    .await;
    let node = driver.api.store().get("nodes", "", WORKER).unwrap();
    assert!(node["metadata"]["annotations"][REASON].is_null(), "{node}");
}

#[tokio::test]
async fn in_driver_mode_a_worker_that_is_not_selected_refuses_the_drain() {
    let Some(testbed) = Testbed::up("operator-label", &[]) else {
        return;
    };
    for hold in ["node", "slurm-pods"] {
        let mut driver = rig(&[("label", "app=slurmd"), ("hold", hold)]).await;
        driver.start().await;
        let job = testbed.submit(300, &[]);
        reconcile(&testbed, &driver, true);
        assert_eq!(driver.drain("drain").await, "Failed", "{}", driver.reported());
        assert!(
            driver.reported().contains("looks like a Slurm worker"),
            "{}",
            driver.reported()
        );
        assert!(!driver.is_cordoned() && !driver.reported().contains("evict    "));
        assert_eq!(testbed.job(job), "RUNNING");
    }
}

#[tokio::test]
async fn a_machine_that_is_declared_off_is_drained_once_slurm_has_given_it_up() {
    let Some(testbed) = Testbed::up("operator-off", &["--slurmd-timeout", "4"]) else {
        return;
    };
    let mut driver = rig(&[]).await;
    let edit = |node: &mut Value| node["status"]["conditions"] = json!([is_off()]);
    driver.api.store().edit("nodes", "", WORKER, edit).unwrap();
    testbed.submit(300, &[]);
    reconcile(&testbed, &driver, true);
    let drain = driver.types(&["drain", WORKER, "--node-is-off"]);
    when(&testbed, &driver, true, "Slurm drains it", || {
        testbed.node().starts_with("draining ")
    })
    .await;
    testbed.daemon(&format!("slurmd-{NODE}"), "kill");
    when(&testbed, &driver, true, "it is drained", || {
        drain.stdout().contains("Drained in")
    })
    .await;
    let state = testbed.client(&["scontrol", "show", "node", NODE]);
    assert!(state.contains("State=DOWN+DRAIN"), "{state}");
    let ended = drain.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
