//! `--output json` matches the published schemas, and `--output yaml` is the same.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use scupper_recording::Recording;
use serde_json::{Value, json};

use crate::guests::guest;
use crate::kubelet_node::{Agent, asks, until};
use crate::rig::Rig;
use crate::schema::Schema;

const DRAIN: &str = include_str!("../../../../deploy/schemas/drain.schema.json");
const STATUS: &str = include_str!("../../../../deploy/schemas/status.schema.json");
const OVERVIEW: &str = include_str!("../../../../deploy/schemas/overview.schema.json");
const PLAN: &str = include_str!("../../../../deploy/schemas/plan.schema.json");
const FORECAST: &str = include_str!("../../../../deploy/schemas/forecast.schema.json");
const REPORT: &str = include_str!("../../../../deploy/schemas/report.schema.json");
const DOCTOR: &str = include_str!("../../../../deploy/schemas/doctor.schema.json");

/// A pod that a budget blocks on a node, and one that it does not.
fn rig() -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("web", "worker-1"));
    rig
}

/// All objects in a command's output.
#[track_caller]
fn json(rig: &Rig, args: &[&str]) -> Vec<Value> {
    let run = rig.run(&[args, &["--output", "json"]].concat());
    let objects = objects(&run.stdout);
    assert!(!objects.is_empty(), "{run:#?}");
    objects
}

#[track_caller]
fn objects(text: &str) -> Vec<Value> {
    let objects = serde_json::Deserializer::from_str(text).into_iter();
    let objects: Result<_, _> = objects.collect();
    objects.unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn yaml(rig: &Rig, args: &[&str]) -> Vec<Value> {
    let run = rig.run(&[args, &["-o", "yaml"]].concat());
    let documents = run.stdout.split("---\n").skip(1);
    let read = |text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    documents.map(read).collect()
}

/// The objects in the snapshot of this name, in the folder beside its test.
fn snapshot(name: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let host = workspace.filter(|it| it.ends_with("host")).last().unwrap();
    find(host, &format!("{name}.snap"), &mut found);
    let [file] = found.as_slice() else {
        panic!("{name}: {found:?}")
    };
    let text = std::fs::read_to_string(file).unwrap();
    // The first document states its source.
    let shown = text.splitn(3, "---\n").nth(2).unwrap();
    objects(shown)
}

fn find(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            find(&path, name, found);
        } else if path.ends_with(name) {
            found.push(path);
        }
    }
}

#[track_caller]
fn is_as_published(schema: &str, printed: &[Vec<Value>], snapshots: &[&str]) {
    let mut schema = Schema::new(schema);
    let shown: Vec<_> = snapshots.iter().flat_map(|name| snapshot(name)).collect();
    for value in printed.iter().flatten().chain(&shown) {
        schema.check(value);
    }
    schema.is_seen();
}

/// The line of a drain that tells when it will end, because such a one is recorded. An Event and the recording have it as well.
fn estimate() -> Value {
    let rig = Rig::new();
    let directory = format!("{}/", rig.dir.path().join("recordings").to_str().unwrap());
    let drain = [
        "drain", "worker-1", "--local", "--record", &directory, "-o", "json",
    ];
    let is_estimate = |line: &Value| line["kind"] == "estimate";
    rig.apply(rig.pod("web", "worker-1"));
    let unknown = rig.run(&drain);
    assert_eq!(unknown.code, Some(0), "{unknown:#?}");
    assert!(!objects(&unknown.stdout).iter().any(is_estimate), "{unknown:#?}");
    rig.apply(rig.pod("web", "worker-1"));
    // No play is over before it is known.
    let mut known = rig.start(&[&drain[..], &["--notify-before", "1h", "--timeout", "5h"]].concat());
    known.prints(r#""kind":"estimate""#);
    let line = objects(&known.stdout()).into_iter().find(is_estimate).unwrap();
    let is_told = || {
        let mut events = rig.objects("events.events.k8s.io").into_iter();
        events.any(|event| event["reason"] == "DrainEstimated" && event["regarding"]["name"] == "worker-1")
    };
    until("an Event tells when the drain will end", is_told);
    let is_recorded = || {
        let files = std::fs::read_dir(&directory).unwrap();
        let mut read = files.filter_map(|file| Recording::read(&file.unwrap().path()).ok());
        read.any(|recording| recording.estimate.is_some())
    };
    until("the recording has the estimate", is_recorded);
    known.kill();
    let [early, likely, late] = ["early", "likely", "late"].map(|end| line["estimate"][end].as_str());
    // RFC 3339, all in one zone.
    assert!(early <= likely && likely <= late, "{line:#}");
    line
}

/// The snapshots have every notice of a drain, and every observation of a delegated one.
#[test]
fn the_lines_of_a_drain_match_their_schema() {
    let rig = rig();
    let local = json(&rig, &["drain", "worker-1", "--local", "--timeout", "3s"]);
    let uncordoned = json(&rig, &["uncordon", "worker-1", "--local"]);
    let mut agent = Agent::with(&rig, true, &["--output", "json"]);
    let followed = json(&rig, &asks("drain", &["--timeout", "3s"]));
    agent.driver.prints(r#""kind":"finished""#);
    let driver = objects(&agent.driver.stdout());
    let mut printed = vec![local, uncordoned, followed, driver];
    for lines in &printed {
        assert_eq!(lines.last().unwrap()["kind"], "finished", "{lines:?}");
    }
    printed.push(vec![estimate()]);
    is_as_published(DRAIN, &printed, &["drain-json", "followed-json"]);
}

#[test]
fn the_command_reference_names_every_kind_of_line() {
    let schema: Value = serde_json::from_str(DRAIN).unwrap();
    let reference = include_str!("../../../COMMANDS.md");
    for line in schema["oneOf"].as_array().unwrap() {
        let kind = line["properties"]["kind"]["const"].as_str().unwrap();
        assert!(reference.contains(&format!("`{kind}`")), "{kind}");
    }
}

#[test]
fn the_status_output_matches_its_schema() {
    let rig = rig();
    let before = json(&rig, &["status", "worker-1", "worker-2"]);
    let mut drain = rig.start(&["drain", "worker-1", "--local"]);
    drain.prints("waits    shop/db");
    let during = json(&rig, &["status", "worker-1"]);
    assert_eq!(during[0]["drain"]["phase"], "holding");
    drain.signal(Signal::INT);
    drain.ended();
    let after = json(&rig, &["status", "worker-1"]);
    let drain = json!({"id": "a-1", "name": "gpu-3", "trigger": "DrainRequest", "uncordons": false});
    rig.apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "scupper", "name": "worker-2",
            "annotations": {"scupper.dev/drain": drain.to_string()}},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 30},
    }));
    let planning = json(&rig, &["status", "worker-2"]);
    assert_eq!(planning[0]["planning"], drain);
    let mut watch = rig.start(&["status", "worker-3", "--watch", "-o", "json"]);
    watch.prints(r#""node":"worker-3""#);
    rig.inside(|| rig.api.store().delete("nodes", "", "worker-3"));
    watch.prints(r#"{"gone":true,"node":"worker-3"}"#);
    let watched = objects(&watch.stdout());
    let printed = [before, during, after, planning, watched];
    is_as_published(STATUS, &printed, &["status-json"]);
}

#[test]
fn the_overviews_output_matches_its_schema() {
    let rig = rig();
    rig.run(&["drain", "worker-2", "--local"]);
    let printed = json(&rig, &["status"]);
    assert_eq!(printed[0]["state"], "drained");
    is_as_published(OVERVIEW, &[printed], &["overview-json"]);
}

#[test]
fn the_plans_output_matches_its_schema() {
    let rig = rig();
    let plan = json(&rig, &["plan", "worker-1", "worker-2"]);
    let asked = json(&rig, &["drain", "worker-1", "--dry-run=server"]);
    assert_eq!(asked[0]["answers"][0]["answer"], "BudgetExhausted");
    rig.apply(scupper_simulator::api::objects::pod("shop", "bare", "worker-3"));
    let blocked = json(&rig, &["plan", "worker-3"]);
    assert_eq!(blocked[0]["outcome"], "Blocked");
    let recordings = recordings(&rig, &[]);
    let probably = json(&rig, &["plan", "worker-1", "--recordings", &recordings]);
    let found = found_by_a_policy(&rig);
    is_as_published(
        PLAN,
        &[plan, asked, blocked, probably, found],
        &["plan-output-json"],
    );
}

/// A plan with what its policy finds wrong: the doctor tells the same, and more.
fn found_by_a_policy(rig: &Rig) -> Vec<Value> {
    let config = rig.dir.path().join("found.yaml");
    let text = "apiVersion: scupper.dev/v1alpha1
kind: Configuration
policies:
- name: slurm
  module: GUEST
  grants: {node-annotations: [seen.example.com/], events: [node]}
  config: {findings: 'warning|jobs|job 17 also runs on gpu-2|let it end'}
";
    let guest = guest("surrounded");
    std::fs::write(&config, text.replace("GUEST", guest.to_str().unwrap())).unwrap();
    let plan = ["plan", "worker-1", "--config", config.to_str().unwrap()];
    let read = rig.run(&plan);
    let line = "policy slurm: jobs: job 17 also runs on gpu-2 (let it end)";
    assert!(read.stdout.lines().any(|printed| printed == line), "{read:#?}");
    let found = json(rig, &plan);
    let expected = json!([{"policy": "slurm", "severity": "warning", "subject": "jobs",
        "message": "job 17 also runs on gpu-2", "fix": "let it end"}]);
    assert_eq!(found[0]["policyFindings"], expected, "{found:#?}");
    found
}

/// A directory with the recording of a drain that did not end in time.
fn recordings(rig: &Rig, flags: &[&str]) -> String {
    let directory = rig.dir.path().join("recordings/");
    let directory = directory.to_str().unwrap().to_owned();
    let drain = ["drain", "worker-1", "--timeout", "1s", "--record", &directory];
    let drained = rig.run(&[&drain[..], flags].concat());
    assert_eq!(drained.code, Some(6), "{drained:#?}");
    directory
}

#[test]
fn the_forecasts_output_matches_its_schema() {
    let rig = rig();
    let config = rig.dir.path().join("scupper.yaml");
    let text = "apiVersion: scupper.dev/v1alpha1
kind: Configuration
policies:
- {name: slurm, module: GUEST, grants: {node-annotations: [seen.example.com/], events: [node]}, config: {waits: job}}
";
    let guest = guest("surrounded");
    std::fs::write(&config, text.replace("GUEST", guest.to_str().unwrap())).unwrap();
    let policies = ["--config", config.to_str().unwrap()];
    let nowhere = json!({"pool": "none"});
    rig.apply(rig.pod("choosy", "worker-1").with("/spec/nodeSelector", nowhere));
    rig.service("web");
    let unknown = json(&rig, &[&["forecast", "worker-1"], &policies[..]].concat());
    // The budget stops one drain, and a hook that does not end another.
    let recordings = recordings(&rig, &[]);
    self::recordings(&rig, &policies);
    rig.apply(rig.pod("other-db", "worker-2").label("app", "db"));
    let both = ["forecast", "worker-1", "worker-2", "--timeout", "1m"];
    let learned = ["--recordings", &recordings];
    let known = json(&rig, &[&both[..], &learned, &policies].concat());
    rig.apply(scupper_simulator::api::objects::pod("shop", "bare", "worker-3"));
    let refused = json(&rig, &["forecast", "worker-3"]);
    is_as_published(FORECAST, &[unknown, known, refused], &[]);
}

#[test]
fn the_reports_output_matches_its_schema() {
    let rig = rig();
    let directory = recordings(&rig, &[]);
    let uncordon = ["uncordon", "worker-1", "--local", "--record", &directory];
    assert_eq!(rig.run(&uncordon).code, Some(0));
    let files = std::fs::read_dir(&directory).unwrap();
    let files: Vec<_> = files
        .map(|file| file.unwrap().path().to_str().unwrap().to_owned())
        .collect();
    let report: Vec<_> = ["report"]
        .into_iter()
        .chain(files.iter().map(String::as_str))
        .collect();
    let printed = json(&rig, &report);
    assert_eq!(printed.len(), 2, "{printed:#?}");
    assert_eq!(yaml(&rig, &report), printed);
    is_as_published(REPORT, &[printed], &["report-json"]);
}

#[test]
fn the_doctors_output_matches_its_schema() {
    let findings = json(&rig(), &["doctor", "--node", "worker-1"]);
    is_as_published(DOCTOR, &[findings], &["doctor-json"]);
}

#[test]
fn a_schema_refuses_undescribed_fields() {
    let faults = |change: fn(&mut Value)| {
        let mut value = snapshot("doctor-json").remove(0);
        change(&mut value);
        std::panic::catch_unwind(|| Schema::new(DOCTOR).check(&value)).is_err()
    };
    assert!(!faults(|_| {}));
    assert!(faults(|value| value["more"] = true.into()));
    assert!(faults(|value| value["state"] = "perhaps".into()));
    assert!(faults(|value| value["text"] = 1.into()));
    assert!(faults(|value| drop(
        value.as_object_mut().unwrap().remove("text")
    )));
    assert!(std::panic::catch_unwind(|| Schema::new(DOCTOR).is_seen()).is_err());
    assert!(std::panic::catch_unwind(|| Schema::new(r#"{"type": "object"}"#)).is_err());
    assert!(std::panic::catch_unwind(|| Schema::new(r#"{"pattern": "a"}"#)).is_err());
}

#[test]
fn yaml_has_the_same_values_as_json() {
    let rig = rig();
    rig.apply(scupper_simulator::api::objects::node("worker-4").cordoned());
    let commands = [
        &["plan", "worker-1", "worker-2"][..],
        &["status", "worker-1", "worker-2"],
        &["status"],
        &["doctor", "--node", "worker-1"],
        &["cancel", "worker-1", "worker-2"],
    ];
    for command in commands {
        assert_eq!(yaml(&rig, command), json(&rig, command), "{command:?}");
    }
}

#[test]
fn a_cancel_has_the_same_values_in_yaml_and_json() {
    let rig = rig();
    let cancelled = |read: fn(&Rig, &[&str]) -> Vec<Value>| {
        let mut drain = rig.start(&["drain", "worker-1", "--local"]);
        drain.prints("waits    shop/db");
        let cancelled = read(&rig, &["cancel", "worker-1"]);
        drain.ended();
        cancelled
    };
    let json = cancelled(json);
    assert_eq!(json[0]["cancelled"].as_array().unwrap().len(), 1, "{json:?}");
    // Pods evicted the first time are gone, which the answer does not show.
    assert_eq!(cancelled(yaml), json);
}
