//! How a drain would go: told before it begins, and from the times of recorded drains.

use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_forecast_knows_the_times_of_recorded_drains_and_changes_nothing() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(rig.pod("db", "worker-1"));
    let directory = format!("{}/", rig.dir.path().join("recordings").to_str().unwrap());
    let forecast = ["forecast", "worker-1", "--recordings", &directory];
    let unknown = rig.run(&forecast);
    assert_eq!(unknown.code, Some(0), "{unknown:#?}");
    let lines: Vec<_> = unknown.stdout.lines().collect();
    assert_eq!(lines[0], "worker-1: 200 plays of this drain");
    assert!(lines[1].starts_with("  end      p50 "), "{unknown:#?}");
    assert!(lines[2].starts_with("  waits    of "), "{unknown:#?}");
    assert_eq!(lines[3], "  known    nothing: no recorded drain was read");
    let assumed = "  assumed  ReplicaSet shop/web (2 pods): pods end after 1s, or up to their grace period";
    assert_eq!(lines[4..], [assumed]);
    assert!(!rig.is_cordoned("worker-1"));

    let drained = rig.run(&["drain", "worker-1", "--record", &directory]);
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    rig.apply(rig.pod("web", "worker-1"));
    let known = rig.run(&[&forecast[..], &["-o", "json", "--timeout", "1h"]].concat());
    assert_eq!(known.code, Some(0), "{known:#?}");
    let known: Value = serde_json::from_str(&known.stdout).unwrap();
    assert_eq!(known["knownWorkloads"], 1, "{known:#}");
    assert_eq!(known["recordings"], 1, "{known:#}");
    assert_eq!(known["drained"], 200, "{known:#}");
    assert_eq!(known["limitSeconds"], 3600.0, "{known:#}");
    assert_eq!(known["unknownWorkloads"], json!([]), "{known:#}");

    let planned = rig.run(&["plan", "worker-1", "--recordings", &directory]);
    let last = planned.stdout.lines().last().unwrap();
    assert!(last.starts_with("Probably: p50 "), "{planned:#?}");
    assert!(last.ends_with(", from 1 recorded drain."), "{planned:#?}");
    let json = rig.run(&["plan", "worker-1", "--recordings", &directory, "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["probably"]["recordings"], 1, "{json:#}");
    let without = rig.run(&["plan", "worker-1"]);
    assert!(!without.stdout.contains("Probably"), "{without:#?}");
}

#[test]
fn a_drain_that_would_not_end_is_foretold() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let forecast = rig.run(&["forecast", "worker-1"]);
    assert_eq!(forecast.code, Some(0), "{forecast:#?}");
    let lines: Vec<_> = forecast.stdout.lines().collect();
    assert_eq!(
        lines[1], "  end      200 of 200 plays do not end",
        "{forecast:#?}"
    );
    assert_eq!(
        lines[2],
        "  waits    without an end for disruption budget keep-db"
    );
    assert_eq!(lines[3], "  stays    shop/db: still there in every play");
    let unknown = rig.run(&["forecast", "nowhere"]);
    assert_eq!(unknown.code, Some(4), "{unknown:#?}");
}

#[test]
fn nodes_that_share_a_budget_are_named() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("other-db", "worker-2").label("app", "db"));
    let forecast = rig.run(&["forecast", "worker-1", "worker-2"]);
    assert_eq!(forecast.code, Some(0), "{forecast:#?}");
    for other in ["worker-2", "worker-1"] {
        let line = format!(
            "  shared   budget shop/keep-db also counts pods of {other}: drained together, they wait for each other"
        );
        assert!(
            forecast.stdout.lines().any(|printed| printed == line),
            "{forecast:#?}"
        );
    }
    let alone = rig.run(&["forecast", "worker-1"]);
    assert!(!alone.stdout.contains("  shared "), "{alone:#?}");
}

#[test]
fn a_drain_that_would_be_refused_has_no_forecast() {
    let rig = Rig::new();
    let mut pod = Value::from(rig.pod("cache", "worker-1"));
    pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    rig.apply(pod);
    let refused = rig.run(&["forecast", "worker-1"]);
    assert_eq!(refused.code, rig.run(&["plan", "worker-1"]).code, "{refused:#?}");
    let first = "worker-1: no drain would begin; `scupper plan worker-1` says more\n";
    assert!(refused.stdout.starts_with(first), "{refused:#?}");
}
