//! Shadow policies: they change nothing, cost the drain nothing, and what they would change is reported.

use std::fs;

use serde_json::Value;

use crate::guests::guest;
use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Run};
use scupper_api::facts::FactObject;
use scupper_recording::{Recording, ShadowPlan};

/// A configuration with a shadow that is this guest; `more`: further lines of the policy.
fn config(rig: &Rig, name: &str, more: &str) -> String {
    let file = rig.dir.path().join("scupper.yaml");
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1
kind: Configuration
policies:
  - name: next
    module: {}
    mode: shadow
{more}",
        guest(name).display()
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Drains worker-1 in the terminal, and returns what the recording has of shadows.
fn drained(rig: &Rig, config: &str, more: &[&str]) -> (Run, Vec<ShadowPlan>) {
    let file = rig.dir.path().join("drain.gz");
    let args = ["drain", "worker-1", "--local", "--config", config, "--record"];
    let run = rig.run(&[&args[..], &[file.to_str().unwrap()], more].concat());
    let recording = Recording::read(&file).unwrap();
    scupper_recording::replay(&recording).unwrap();
    (run, recording.shadows)
}

const DELETES: &str = "    config: {verdict: delete}\n";

fn events(rig: &Rig) -> Vec<Value> {
    let events = rig.objects("events.events.k8s.io").into_iter();
    events
        .filter(|event| event["reason"] == "ShadowPlanDiffers")
        .collect()
}

#[test]
fn a_shadow_that_would_delete_all_deletes_nothing_and_is_reported() {
    let mut rig = Rig::new();
    rig.is_recorded = false;
    let file = config(&rig, "decides", DELETES);
    let state = rig.dir.path().join("state").to_str().unwrap().to_owned();
    let _agent = Agent::with(&rig, false, &["--config", &file, "--state-dir", &state]);
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&asks("drain", &["--timeout", "5s"]));
    assert_eq!(run.code, Some(6), "{run:#?}");
    assert_eq!(rig.pods(), ["db"], "its budget keeps it, as without the shadow");
    until("the Event is written", || !events(&rig).is_empty());
    let [event] = &events(&rig)[..] else {
        panic!("one for a drain: {:?}", events(&rig))
    };
    let note = event["note"].as_str().unwrap();
    assert!(
        note.starts_with("shadow policy next would treat 2 pods differently: shop/db: delete in wave 1 all instead of evict"),
        "{note}"
    );
    let listed = rig.run(&["policy", "list", "--state-dir", &state]);
    assert!(listed.stdout.contains("  shadow  "), "{listed:#?}");
    let recordings = format!("{state}/recordings");
    let recorded = || {
        let files = fs::read_dir(&recordings).unwrap();
        let recordings = files.map(|file| Recording::read(&file.unwrap().path()).unwrap());
        recordings.into_iter().find(|recording| recording.end.is_some())
    };
    until("the recording has its end", || recorded().is_some());
    let recording = recorded().unwrap();
    assert_eq!(recording.shadows[0].pods(), 2, "{:?}", recording.shadows);
    scupper_recording::replay(&recording).unwrap();
}

#[test]
fn the_hooks_of_a_shadow_are_not_called() {
    let rig = Rig::new();
    let more = "    grants: {node-annotations: [seen.example.com/], events: [node]}\n    config: {waits: \"job 21|on host\"}\n";
    let file = config(&rig, "surrounded", more);
    rig.apply(rig.pod("web", "worker-1"));
    let (run, _) = drained(&rig, &file, &[]);
    assert_eq!(run.code, Some(0), "nothing waits for its hook: {run:#?}");
    let back = rig.run(&["uncordon", "worker-1", "--local", "--config", &file]);
    assert_eq!(back.code, Some(0), "{back:#?}");
    let said = |event: &Value| event["reason"] == "StaysDrained";
    assert!(!rig.objects("events.events.k8s.io").iter().any(said));
    assert_eq!(
        rig.node("worker-1")["metadata"]["annotations"]["scupper.dev/drain"],
        Value::Null
    );
}

#[test]
fn what_only_a_shadow_has_asked_for_is_recorded() {
    let rig = Rig::new();
    let more = "    grants: {facts: [request, namespaces, budgets, owners, resources, volumes, peers]}\n    config: {ask: namespace shop, then: go on}\n";
    let file = config(&rig, "asks", more);
    rig.apply(rig.pod("web", "worker-1"));
    let (run, shadows) = drained(&rig, &file, &[]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(shadows[0].result.name(), "agrees", "{shadows:?}");
    let recording = Recording::read(&rig.dir.path().join("drain.gz")).unwrap();
    let [learned] = &recording.facts[..] else {
        panic!("of one policy: {:?}", recording.facts)
    };
    let is_shop =
        |object: &FactObject| matches!(object, FactObject::Namespace(it) if it.metadata.name == "shop");
    assert!(
        learned.policy == "next" && learned.objects.iter().any(is_shop),
        "{learned:?}"
    );
}

#[test]
fn a_shadow_that_never_answers_does_not_hold_the_drain_up() {
    let rig = Rig::new();
    let file = config(
        &rig,
        "spins_in_plan",
        "    limits: {cpu-per-plan: 30s, wall-per-plan: 30s}\n",
    );
    rig.apply(rig.pod("web", "worker-1"));
    let (run, shadows) = drained(&rig, &file, &["--timeout", "20s"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(shadows[0].result.name(), "unfinished", "{shadows:?}");
    assert!(rig.pods().is_empty() && events(&rig).is_empty());
}

#[test]
fn a_shadow_that_traps_is_a_warning() {
    let rig = Rig::new();
    let file = config(&rig, "panics", "");
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let (run, shadows) = drained(&rig, &file, &["--timeout", "5s"]);
    assert_eq!(run.code, Some(6), "the drain ends as without it: {run:#?}");
    assert_eq!(shadows[0].result.name(), "failed", "{shadows:?}");
    assert!(
        run.stderr.contains("shadow policy next has no plan: "),
        "{run:#?}"
    );
    assert!(events(&rig).is_empty());
    let recording = rig.dir.path().join("drain.gz");
    let report = |more: &[&str]| rig.run(&[&["report", recording.to_str().unwrap()][..], more].concat());
    let text = report(&[]);
    assert!(
        text.stdout.contains("\nShadow policy next has no plan: "),
        "{text:#?}"
    );
    let json: Value = serde_json::from_str(&report(&["-o", "json"]).stdout).unwrap();
    assert_eq!(json["shadows"][0]["policy"], "next", "{json:#}");
}

#[test]
fn a_plan_says_what_the_shadow_would_change() {
    let rig = Rig::new();
    let file = config(&rig, "decides", DELETES);
    rig.apply(rig.pod("web", "worker-1"));
    let plan = rig.run(&["plan", "worker-1", "--config", &file]);
    assert_eq!(plan.code, Some(0), "{plan:#?}");
    let line = "shadow policy next would treat 1 pod differently: shop/web: delete in wave 1 all instead of evict in wave 1 all\n";
    assert!(plan.stdout.contains(line), "{plan:#?}");
    assert!(plan.stdout.contains("  evict            shop/web"), "{plan:#?}");
    let json = rig.run(&["plan", "worker-1", "--config", &file, "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let shadow = &json["shadows"][0];
    assert_eq!(
        (&shadow["result"], &shadow["policy"]),
        (&"differs".into(), &"next".into())
    );
    assert_eq!(shadow["pods"][0]["shadow"]["verdict"], "delete");
    // With the flag that a plan lacks, it says the same.
    rig.apply(scupper_simulator::api::objects::pod("shop", "bare", "worker-1"));
    let lacking = rig.run(&["plan", "worker-1", "--config", &file, "-o", "json"]);
    let lacking: Value = serde_json::from_str(&lacking.stdout).unwrap();
    assert_eq!(
        lacking["withFlags"]["flags"],
        serde_json::json!(["--force"]),
        "{lacking:#}"
    );
    assert_eq!(
        lacking["withFlags"]["shadows"][0]["result"], "differs",
        "{lacking:#}"
    );
    assert_eq!(json["plan"]["decisions"][0]["verdict"], "evict");
}

#[test]
fn a_shadow_is_named_by_the_check_and_promoted_by_hand() {
    let rig = Rig::new();
    let file = config(&rig, "decides", DELETES);
    let before = fs::read_to_string(&file).unwrap();
    let checked = rig.run(&["config", "check", &file]);
    assert!(
        checked.stdout.contains("the policy next (shadow)"),
        "{checked:#?}"
    );
    let promoted = rig.run(&["policy", "promote", "next", "--config", &file]);
    assert_eq!(promoted.code, Some(0), "{promoted:#?}");
    assert!(
        promoted.stdout.contains("\n-    mode: shadow\n     config: "),
        "{promoted:#?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let unknown = rig.run(&["policy", "promote", "other", "--config", &file]);
    let error =
        format!("error: {file}: policies: there is no policy `other`; name one of the shadows: next\n");
    assert_eq!((unknown.code, unknown.stderr), (Some(3), error));
}
