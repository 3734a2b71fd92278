//! `scupper cleanup` takes back what drains have changed outside of the node's annotation, or names it.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::node_is_off::{is_marked, set_ready, taints};
use crate::rig::Rig;

/// A drain has ended, and its driver died before it took back what it had changed.
fn left_behind() -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1").takes(0.1));
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let mut mark = rig.mark("worker-1").unwrap();
    let id = mark["id"].clone();
    rig.apply(
        objects::deployment("shop", "web", 2)
            .annotation("scupper.dev/surge", id.as_str().unwrap())
            .annotation("scupper.dev/raised-from", "1"),
    );
    let uid = web(&rig)["metadata"]["uid"].clone();
    mark["raised"] = json!([{"namespace": "shop", "name": "web", "uid": uid, "drain": id}]);
    mark["to_undo"] = json!(["slurm"]);
    let taint =
        json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
    rig.inside(|| {
        rig.api.store().edit("nodes", "", "worker-1", |node| {
            let annotations = &mut node["metadata"]["annotations"];
            annotations["scupper.dev/drain"] = json!(mark.to_string());
            annotations["scupper.dev/out-of-service"] = id.clone();
            node["spec"]["taints"] = json!([taint]);
        })
    })
    .unwrap();
    rig
}

fn web(rig: &Rig) -> Value {
    rig.objects("deployments.apps").pop().unwrap()
}

#[test]
fn what_drains_have_changed_is_taken_back_and_what_only_others_can_undo_is_named() {
    let rig = left_behind();
    set_ready(&rig, "True");
    let says = |node: &mut Value| node["metadata"]["annotations"]["scupper.dev/policies"] = json!("a");
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", says))
        .unwrap();
    let run = rig.run(&["cleanup", "--node-name", "worker-1", "--output", "json"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let done: Value = serde_json::from_str(&run.stdout).unwrap();
    let texts = |field: &str| {
        let texts = done[field].as_array().unwrap().iter();
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join("; ")
    };
    let (removed, left) = (texts("removed"), texts("left"));
    for what in [
        "Deployment shop/web",
        "the taint node.kubernetes.io/out-of-service of node worker-1",
        "the annotation scupper.dev/policies of node worker-1",
    ] {
        assert!(removed.contains(what), "{what}: {removed}");
    }
    for what in ["slurm", "scupper uncordon worker-1", "kubectl uncordon worker-1"] {
        assert!(left.contains(what), "{what}: {left}");
    }
    assert_eq!(web(&rig)["spec"]["replicas"], 1);
    assert_eq!((taints(&rig), is_marked(&rig)), (vec![], false));
    assert_eq!(rig.mark("worker-1"), None);
}

/// Without the taint no controller would delete its pods.
#[test]
fn the_taint_of_a_machine_that_is_still_off_stays_and_is_named() {
    let rig = left_behind();
    set_ready(&rig, "Unknown");
    let run = rig.run(&["cleanup", "--node-name", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let line = "left    the taint node.kubernetes.io/out-of-service of node worker-1, whose machine is off";
    assert!(run.stdout.contains(line), "{run:#?}");
    assert_eq!((taints(&rig).len(), is_marked(&rig)), (1, true));
}

#[test]
fn a_deployment_that_cannot_be_taken_back_is_named() {
    let rig = left_behind();
    rig.api.set_forbidden(scupper_simulator::api::Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: "patch".to_owned(),
        resource: "deployments.apps".to_owned(),
    });
    let run = rig.run(&["cleanup", "--node-name", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let line = "left    Deployment shop/web may have one replica more than its owner set: ";
    assert!(run.stdout.contains(line), "{run:#?}");
    assert_eq!(web(&rig)["spec"]["replicas"], 2);
}
