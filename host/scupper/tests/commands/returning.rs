//! Pods that come to the cordoned node: evicted as often as the settings allow, and then kept and named.

use std::time::{Duration, Instant};

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::rig::{LIMIT, Rig};

const TOLERATION: &str = "node.kubernetes.io/unschedulable:NoSchedule";

/// A pod of a StatefulSet that the cordon does not keep from the node.
fn db() -> Value {
    let toleration = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
    objects::pod("shop", "db-0", "worker-1")
        .owner_statefulset("db")
        .label("app", "db")
        .with("/spec/tolerations", toleration)
        .build()
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_returning_pod_is_evicted_once_and_does_not_block_the_drain() {
    let rig = Rig::new();
    rig.apply(db());
    rig.apply(rig.pod("cart", "worker-1"));
    rig.budget("keep-cart", "cart");
    let plan = rig.run(&["plan", "worker-1"]);
    assert!(
        plan.stdout
            .contains(&format!("it tolerates the cordon ({TOLERATION})"))
            && plan.stdout.contains("attention: shop/db-0 may come back"),
        "{plan:#?}"
    );
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("attention: shop/db-0 may come back");
    wait_for("db-0 is not evicted", || !rig.pods().contains(&"db-0".to_owned()));
    rig.apply(db());
    let debug = objects::pod("shop", "debug", "worker-1");
    rig.apply(
        debug
            .with("/spec/tolerations", json!([{"operator": "Exists"}]))
            .build(),
    );
    drain.prints("stays    shop/db-0: StatefulSet db came back to the cordoned node");
    drain.prints(
        "stays    shop/debug: it came to the cordoned node during the drain (it tolerates every taint)",
    );
    wait_for("status does not name it", || {
        let status = rig.run(&["status", "worker-1"]).stdout;
        let held = status.lines().find(|line| line.contains("shop/db-0"));
        held.is_some_and(|line| line.contains("KeepsComingBack") && line.contains(TOLERATION))
    });
    rig.inside(|| {
        rig.api
            .store()
            .delete("poddisruptionbudgets.policy", "shop", "keep-cart")
    });
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    let attention = "attention: 2 pods came during the drain and stay on the node: shop/db-0: StatefulSet db";
    assert!(run.stdout.contains(attention), "{run:#?}");
    assert_eq!(rig.pods(), ["db-0", "debug"]);
    let node = rig.node("worker-1");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let drained = conditions.iter().find(|it| it["type"] == "Drained").unwrap();
    let message = drained["message"].as_str().unwrap();
    assert_eq!(drained["status"], "True", "{node}");
    assert!(
        message.contains("2 pods came during the drain and stay") && message.contains(TOLERATION),
        "{message}"
    );
}

#[test]
fn how_often_it_is_evicted_is_a_setting() {
    let rig = Rig::new();
    rig.apply(db());
    rig.apply(rig.pod("cart", "worker-1"));
    rig.budget("keep-cart", "cart");
    let mut drain = rig.start(&["drain", "worker-1", "--returning-pod-evictions", "2"]);
    for _ in 0..2 {
        wait_for("db-0 is not evicted", || rig.pods() == ["cart"]);
        rig.apply(db());
    }
    drain.prints("stays    shop/db-0: StatefulSet db came back");
    rig.inside(|| {
        rig.api
            .store()
            .delete("poddisruptionbudgets.policy", "shop", "keep-cart")
    });
    assert_eq!(drain.ended().code, Some(0));
    let none = rig.run(&["drain", "worker-1", "--returning-pod-evictions", "0"]);
    assert_eq!(none.code, Some(2), "{none:#?}");
}
