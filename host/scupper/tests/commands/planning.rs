//! A drain that still plans has left nothing on the node: it is shown and can be cancelled all the same.

use scupper_simulator::api::{Forbidden, objects};
use serde_json::Value;

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Running};

/// A pod whose claim may not be read, so that a drain that must refuse local data cannot plan for two minutes.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1").claim("data-0"));
    rig.apply(objects::volume_claim("shop", "data-0", "pv-0"));
    rig.api.set_forbidden(Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: String::new(),
        resource: "persistentvolumeclaims".to_owned(),
    });
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    let config = format!("{head}drain: {{local-data: refuse, forbidden-timeout: 10m}}\n");
    std::fs::write(rig.dir.path().join("scupper.yaml"), config).unwrap();
    rig
}

fn begin(rig: &Rig, trigger: &str) -> (Option<Agent>, Option<Running>) {
    let config = rig.dir.path().join("scupper.yaml");
    let config = config.to_str().unwrap();
    let agent = (trigger != "command").then(|| Agent::with(rig, false, &["--config", config]));
    let drain = match trigger {
        "command" => Some(rig.start(&["drain", "worker-1", "--local", "--config", config])),
        "LifecycleEvent" => Some(rig.start(&asks("drain", &[]))),
        _ => {
            rig.drain_by_cordon();
            None
        }
    };
    (agent, drain)
}

fn planning(rig: &Rig) -> Value {
    let run = rig.run(&["status", "worker-1", "--output", "json"]);
    let status: Value = serde_json::from_str(&run.stdout).unwrap();
    status["planning"].clone()
}

#[test]
fn a_drain_that_plans_is_shown_and_can_be_cancelled_for_every_trigger() {
    for trigger in ["command", "cordon", "LifecycleEvent"] {
        let rig = rig();
        let (_agent, drain) = begin(&rig, trigger);
        until("the drain is shown", || planning(&rig)["trigger"] == trigger);
        assert_eq!(rig.mark("worker-1"), None, "{trigger}");
        let people = rig.run(&["status", "worker-1"]);
        let line = format!("  drain      planning for {trigger} ");
        assert!(people.stdout.contains(&line), "{people:#?}");
        let run = rig.run(&asks("cancel", &[]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains(&format!("cancelled: {trigger} ")), "{run:#?}");
        if let Some(drain) = drain {
            let run = drain.ended();
            assert_eq!(run.code, Some(5), "{run:#?}");
        }
        until("it is over", || planning(&rig) == Value::Null);
        let node = rig.node("worker-1");
        assert!(
            node["metadata"]["annotations"]["scupper.dev/cancel"].is_null(),
            "{node}"
        );
        // Now it could plan.
        rig.api.clear_forbidden();
        let run = rig.run(&asks("cancel", &[]));
        assert!(run.stdout.contains("no drain is under way"), "{run:#?}");
        assert_eq!(rig.pods(), ["db"], "{trigger}");
    }
}
