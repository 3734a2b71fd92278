//! `policy diff`: recorded drains, played with two editions of a policy.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::looking::component;
use crate::program::{policy, repository};

const RECORDED: &str = include_str!("../../../recording/tests/format-4.jsonl");
pub(crate) const KEEP: &str = "example.com/keep";

/// A file with the recorded drain, changed like this.
pub(crate) fn recording(dir: &Path, name: &str, change: impl Fn(&mut Value)) -> String {
    recording_with(dir, name, None, change)
}

/// With one more line before the last one.
pub(crate) fn recording_with(
    dir: &Path,
    name: &str,
    more: Option<Value>,
    change: impl Fn(&mut Value),
) -> String {
    let file = dir.join(format!("{name}.jsonl.gz"));
    let mut out = GzEncoder::new(std::fs::File::create(&file).unwrap(), Compression::fast());
    for line in RECORDED.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        change(&mut line);
        if let Some(more) = more.as_ref().filter(|_| line.get("end").is_some()) {
            writeln!(out, "{more}").unwrap();
        }
        writeln!(out, "{line}").unwrap();
    }
    out.finish().unwrap();
    file.to_str().unwrap().to_owned()
}

/// One of its pods has the label of the example policy.
pub(crate) fn with_label(line: &mut Value) {
    let pods = "/turn/inputs/0/1/Event/Pods";
    for pod in line
        .pointer_mut(pods)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if pod.pointer("/id/name").is_some_and(|name| name == "cart") {
            replaced(pod, "/labels", &json!({KEEP: ""}));
        }
    }
}

pub(crate) fn replaced(line: &mut Value, key: &str, value: &Value) {
    if let Some(found) = line.pointer_mut(key) {
        found.clone_from(value);
    }
}

#[test]
fn what_differs_is_a_table_and_an_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let on = dir.path().to_str().unwrap();
    recording(dir.path(), "drain", with_label);
    let (old, new) = (
        component("examples/policies/announce"),
        component("examples/policies/keep-labelled"),
    );
    let same = policy(&repository(), &["diff", &old, &old, "--on", on]);
    let title = "# Policy announce: 0 of 1 recorded drains would go differently\n";
    assert!(same.good().starts_with(title), "{same:#?}");
    let text = policy(&repository(), &["diff", &old, &new, "--on", on]).ends(8);
    assert!(
        text.starts_with("# Policy announce: 1 of 1 recorded drains would go differently\n"),
        "{text}"
    );
    for row in [
        "## worker-1, 2026-11-26T",
        "| default/cart | evict in wave 1 all | keep (it has the label example.com/keep) |",
        "| hook before-drain of policy announce | done after 0s | not called |",
        "Recorded: Drained after 9s. Played with ",
        ": no end within 24h00m.",
        "- Not modelled: other policies of these drains; ",
    ] {
        assert!(text.contains(row), "no `{row}` in {text}");
    }
}

#[test]
fn as_json_with_what_was_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = recording(dir.path(), "drain", |_| ());
    let (old, new) = (
        component("examples/policies/keep-labelled"),
        component("plugins/gangs"),
    );
    let args = ["--output", "json", "diff", &old, &new, "--on", &file];
    let run = policy(&repository(), &args);
    let printed: Value = serde_json::from_str(run.good()).unwrap();
    let drain = &printed["drains"][0];
    assert_eq!(drain["differences"], Value::Array(Vec::new()), "{printed:#}");
    assert_eq!(drain["recordedEnd"], "Drained after 9s");
    let is_unknown = |drain: &Value| {
        let unknown = drain["notRecorded"].as_array().unwrap();
        unknown.contains(&"specs of pods".into())
    };
    assert!(is_unknown(drain), "{printed:#}");

    let spec = json!({
        "uid": "5c09be00-0000-4009-8000-000000000000", "requests": {}, "claims": [], "volumes": [],
        "scheduling_group": "", "groups": [],
    });
    let learned = json!({"facts": {"policy": "gangs", "objects": [{"PodSpec": spec}]}});
    let file = recording_with(dir.path(), "asked", Some(learned), |_| ());
    let args = ["--output", "json", "diff", &old, &new, "--on", &file];
    let run = policy(&repository(), &args);
    let printed: Value = serde_json::from_str(run.good()).unwrap();
    assert!(!is_unknown(&printed["drains"][0]), "{printed:#}");
}

#[test]
fn what_cannot_be_played_is_named_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let drain = component("examples/policies/announce");
    let saved = RECORDED.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line.pointer("/turn/commands/0/task/Cordon/checkpoint").cloned()
    });
    let saved = saved.unwrap();
    let files = [
        recording(dir.path(), "uncordon", |line| {
            replaced(line, "/header/request/intent", &"Uncordon".into())
        }),
        recording(dir.path(), "resumed", |line| {
            replaced(line, "/header/checkpoint", &saved)
        }),
        recording(dir.path(), "short", |line| {
            replaced(line, "/turn/inputs", &Value::Array(Vec::new()))
        }),
        recording(dir.path(), "good", |_| ()),
    ];
    let mut args = vec!["diff", &drain, &drain, "--on"];
    args.extend(files.iter().map(String::as_str));
    let printed = policy(&repository(), &args);
    let text = printed.good();
    assert!(text.starts_with("# Policy announce: 0 of 1 recorded"), "{text}");
    for why in [
        "uncordon.jsonl.gz: it is an uncordon.",
        "resumed.jsonl.gz: it continues the drain of an earlier process.",
        "short.jsonl.gz: it ends before the drain had seen the node, its pods and the budgets.",
    ] {
        assert!(text.contains(why), "no `{why}` in {text}");
    }
    std::fs::write(&files[0], "no recording").unwrap();
    let text = policy(&repository(), &args).ends(3);
    assert!(
        text.contains("error: ") && text.contains("# Policy announce: 0 of 1 recorded"),
        "{text}"
    );
}
