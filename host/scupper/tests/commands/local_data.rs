//! Pods whose volumes only their node can use: named by the plan, by `doctor` and by drains that are asked to, refused where
//! the operator says so.

use std::path::PathBuf;

use scupper_simulator::api::{Forbidden, objects};
use serde_json::Value;

use crate::kubelet_node::{Agent, asks};
use crate::rig::Rig;

const FOUND: &str = "a replacement of the pod cannot start on another node with its data: only this node can use volume \
                     pv-0 of claim data-0: shop/db";
const CHANGE: &str = "copy the data elsewhere and delete the claim";
const CLAIMS: &str = "persistentvolumeclaims";

/// On worker-1 a pod with a local volume, and one whose volume is elsewhere.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1").claim("data-0"));
    rig.apply(objects::volume_claim("shop", "data-0", "pv-0"));
    rig.apply(objects::local_volume("pv-0", "worker-1", "shop", "data-0"));
    rig.apply(rig.pod("web", "worker-1").claim("data-1"));
    rig.apply(objects::volume_claim("shop", "data-1", "pv-1"));
    rig.apply(objects::persistent_volume("pv-1", "shop", "data-1"));
    rig
}

fn config(rig: &Rig, drain: &str) -> PathBuf {
    let file = rig.dir.path().join("scupper.yaml");
    let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
    std::fs::write(&file, format!("{head}drain: {drain}\n")).unwrap();
    file
}

fn reads(rig: &Rig, mark: usize) -> usize {
    let requests = rig.api.requests_since(mark);
    let reads = requests
        .iter()
        .filter(|it| it.resource.starts_with("persistentvolume"));
    reads.count()
}

/// The notes of Events about findings, each with its type.
fn findings(rig: &Rig) -> Vec<(String, String)> {
    let events = rig.objects("events.events.k8s.io");
    let found = events
        .iter()
        .filter(|event| event["reason"] == "PreFlightFinding");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found
        .map(|event| (text(&event["type"]), text(&event["note"])))
        .collect()
}

#[test]
fn plan_and_doctor_name_the_pods_and_their_claims() {
    let rig = rig();
    let plan = rig.run(&["plan", "worker-1"]);
    assert_eq!(plan.code, Some(0), "{plan:#?}");
    let found = format!("Pre-flight findings:\n  likely   {FOUND}\n           change: {CHANGE}\n");
    assert!(plan.stdout.contains(&found), "{}", plan.stdout);
    let plan = rig.run(&["plan", "worker-1", "--output", "json"]);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["findings"][0]["concern"], "LocalVolume");
    assert_eq!(plan["findings"][0]["pods"][0], "shop/db");
    let doctor = rig.run(&["doctor", "--node", "worker-1"]);
    let note = format!("note  pre-flight    likely: {FOUND}\ndo:                 {CHANGE}");
    let lines = doctor
        .stdout
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(lines.contains(&note), "{lines}");
}

#[test]
fn a_drain_reads_volumes_only_where_it_is_told_to() {
    let rig = rig();
    let mark = rig.api.mark();
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(reads(&rig, mark), 0);
    assert!(!run.stdout.contains("pv-0"), "{run:#?}");
    assert_eq!(findings(&rig), []);
}

#[test]
fn a_drain_that_warns_says_so_in_lines_and_events_and_goes_on() {
    let rig = rig();
    let mark = rig.api.mark();
    let run = rig.run(&["drain", "worker-1", "--local", "--local-data", "warn"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let line = format!("likely   {FOUND}; change: {CHANGE}");
    assert!(run.stdout.contains(&line), "{}", run.stdout);
    assert_eq!(reads(&rig, mark), 4, "two claims and their volumes");
    let [(severity, note)] = &findings(&rig)[..] else {
        panic!("{:?}", findings(&rig))
    };
    assert_eq!(severity, "Normal");
    assert!(note.ends_with(&format!("{FOUND}; change: {CHANGE}")), "{note}");
    assert_eq!(rig.pods(), Vec::<String>::new());
}

#[test]
fn a_drain_that_refuses_changes_nothing_and_says_which_data() {
    let rig = rig();
    let file = config(&rig, "{local-data: refuse}");
    let file = file.to_str().unwrap();
    let refused = ["drain", "worker-1", "--local", "--config", file];
    let run = rig.run(&refused);
    assert_eq!(run.code, Some(5), "{run:#?}");
    for words in [
        "nothing has changed",
        "shop/db: a replacement of the pod",
        "pv-0",
        "[pre-flight check]",
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("shop/web:"), "{}", run.stdout);
    assert!(!rig.is_cordoned("worker-1"));
    assert_eq!(rig.pods(), ["db", "web"]);
    let plan = rig.run(&["plan", "worker-1", "--config", file]);
    assert_eq!(plan.code, Some(5), "{plan:#?}");
    let run = rig.run(&[&refused[..], &["--local-data=warn"]].concat());
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.pods(), Vec::<String>::new());
}

fn forbid(rig: &Rig) {
    rig.api.set_forbidden(Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: String::new(),
        resource: CLAIMS.to_owned(),
    });
}

const UNKNOWN: &str = "whether only this node can use the pod's volumes is not known: ";

#[test]
fn what_cannot_be_read_is_said() {
    let rig = rig();
    forbid(&rig);
    let file = config(&rig, "{local-data: warn}");
    let file = file.to_str().unwrap();
    let run = rig.run(&["drain", "worker-1", "--local", "--config", file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains(UNKNOWN), "{}", run.stdout);
    let said = findings(&rig);
    assert!(said.iter().any(|(_, note)| note.contains(UNKNOWN)), "{said:?}");
    let doctor = rig.run(&["doctor", "--config", file]);
    for words in [
        "no right to get persistentvolumeclaims, needed to see which volumes only the node can use",
        "deploy/components/local-data",
    ] {
        let text = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Data that may be left behind counts as data that is.
#[test]
fn what_cannot_be_read_is_refused_once_it_is_no_hiccup() {
    let rig = rig();
    forbid(&rig);
    let file = config(&rig, "{local-data: refuse, forbidden-timeout: 4s}");
    let file = file.to_str().unwrap();
    let mark = rig.api.mark();
    let run = rig.run(&["drain", "worker-1", "--local", "--config", file]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains("nothing has changed"), "{}", run.stdout);
    assert!(run.stdout.contains(UNKNOWN), "{}", run.stdout);
    assert!(reads(&rig, mark) >= 3, "it tried again");
    assert_eq!(rig.pods(), ["db", "web"]);
    assert!(!rig.is_cordoned("worker-1"));
    let plan = rig.run(&["plan", "worker-1", "--config", file]);
    assert_eq!(plan.code, Some(5), "{plan:#?}");
}

#[test]
fn rights_that_come_back_decide() {
    let rig = rig();
    forbid(&rig);
    let file = config(&rig, "{local-data: refuse}");
    let mut run = rig.start(&["drain", "worker-1", "--local", "--config", file.to_str().unwrap()]);
    run.prints("waits for the planner of pre-flight check");
    rig.api.clear_forbidden();
    let run = run.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stdout.contains("volume pv-0 of claim data-0"),
        "{}",
        run.stdout
    );
}

/// Who may create LifecycleEvents may not leave data behind that the operator protects, unless the operator says so.
#[test]
fn a_handed_over_drain_may_refuse_more_and_not_less() {
    let rig = rig();
    let file = config(&rig, "{local-data: refuse}");
    let agent = Agent::with(&rig, true, &["--config", file.to_str().unwrap()]);
    let run = rig.run(&asks("drain", &["--local-data=warn"]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    for words in ["--local-data=warn", "local-data: refuse", "drain.allow-overrides"] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    assert_eq!(rig.pods(), ["db", "web"]);
    drop(agent);

    let rig = self::rig();
    let file = config(&rig, "{local-data: refuse, allow-overrides: [local-data]}");
    let _agent = Agent::with(&rig, true, &["--config", file.to_str().unwrap()]);
    let run = rig.run(&asks("drain", &[]));
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(
        run.stdout.contains("shop/db: a replacement of the pod"),
        "{run:#?}"
    );
    let run = rig.run(&asks("drain", &["--local-data=warn"]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.pods(), Vec::<String>::new());
}
