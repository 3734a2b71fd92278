//! `replay --policy` and `--config`: a recorded drain, played with something changed.

use std::path::Path;

use serde_json::{Value, json};

use crate::comparing::{recording, recording_with, replaced, with_label};
use crate::looking::component;
use crate::program::{Run, replay};
use crate::schema::Schema;

const SCHEMA: &str = include_str!("../../../../deploy/schemas/replay.schema.json");

/// A configuration file with these policies and settings.
fn config(dir: &Path, name: &str, rest: &str) {
    let text = format!("apiVersion: scupper.dev/v1alpha1\nkind: Configuration\n{rest}");
    std::fs::write(dir.join(name), text).unwrap();
}

fn policy(name: &str, settings: &str) -> String {
    let module = component(&format!("plugins/{name}"));
    format!("- name: {name}\n  module: {module}\n{settings}")
}

#[track_caller]
fn has_all(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            text.lines().any(|printed| printed == *line),
            "no `{line}` in\n{text}"
        );
    }
}

#[test]
fn a_limit_that_would_have_failed_the_drain() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", |_| ());
    config(dir.path(), "new.yaml", "policies: []\ndrain:\n  sla: 3s\n");
    let text = replay(dir.path(), &["drain.jsonl.gz", "--config", "new.yaml"]).ends(8);
    has_all(
        &text,
        &[
            "# new.yaml: 1 of 1 recorded drains would go differently",
            "| | as recorded | changed |",
            "| hook before-wave of policy namespace-modes of namespaces-after-1h | done after 9s | not called |",
            "| still there at the end | none | dev/notebook, batch/train |",
            "| end | Drained after 9s | DeadlineExceeded after 3s |",
            "Recorded: Drained after 9s. Played as recorded: Drained after 9s.",
        ],
    );
    // As before, or with more time than it needs.
    config(
        dir.path(),
        "new.yaml",
        "policies: []\ndrain:\n  sla: 1h\n  pre-flight: refuse\n",
    );
    let run = replay(dir.path(), &["drain.jsonl.gz", "--config", "new.yaml"]);
    has_all(
        run.good(),
        &[
            "# new.yaml: 0 of 1 recorded drains would go differently",
            "- Not modelled: drain.pre-flight of new.yaml; batch/train, which ended by itself; where replacements run, surges, volumes.",
        ],
    );
}

#[test]
fn policies_in_another_order() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", |_| ());
    let rules = "  config: {rules: 'batch AllowCompletion 1h, dev DeleteAfterTimeout 4s grace 1s'}\n";
    let (modes, priority) = (policy("namespace-modes", rules), policy("priority", ""));
    let play = |order: [&String; 2]| {
        config(
            dir.path(),
            "new.yaml",
            &format!("policies:\n{}{}", order[0], order[1]),
        );
        replay(dir.path(), &["drain.jsonl.gz", "--config", "new.yaml"]).ends(8)
    };
    has_all(
        &play([&modes, &priority]),
        &["| default/cart | evict in wave 1 all | evict in wave 3 priority-0 |"],
    );
    // What the last policy says is as it was.
    let text = play([&priority, &modes]);
    has_all(
        &text,
        &["| hook before-wave of policy namespace-modes of priority-0 | not called | done after 0s |"],
    );
    assert!(!text.contains("default/cart"), "{text}");
}

#[test]
fn another_component_of_one_of_its_policies() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", with_label);
    let changed = format!("namespace-modes={}", component("examples/policies/keep-labelled"));
    let text = replay(dir.path(), &["drain.jsonl.gz", "--policy", &changed]).ends(8);
    has_all(
        &text,
        &[
            "| default/cart | evict in wave 1 all | keep (it has the label example.com/keep) |",
            "| hook before-wave of policy namespace-modes of all | done after 0s | not called |",
        ],
    );
}

/// Also if the policy that is left has the same hook.
#[test]
fn a_policy_that_is_dropped_is_a_difference() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", |line| {
        if let Some(policies) = line.pointer_mut("/header/request/policies") {
            let policies = policies.as_array_mut().unwrap();
            policies.clear();
            for name in ["first", "announce"] {
                policies.push(
                    json!({"name": name, "planner": false, "phases": ["BeforeDrain"], "node_selector": {}}),
                );
            }
        }
        let mut recorded = json!([]);
        if let Some(policies) = line.pointer("/header/policies") {
            let named = ["first", "announce"].map(|name| {
                let mut policy = policies[0].clone();
                policy["name"] = json!(name);
                policy
            });
            recorded = json!(named);
        }
        replaced(line, "/header/policies", &recorded);
    });
    let module = component("examples/policies/announce");
    let grants = "  grants: {node-annotations: [example.com/]}\n";
    let text = format!("policies:\n- name: announce\n  module: {module}\n{grants}");
    config(dir.path(), "new.yaml", &text);
    let text = replay(dir.path(), &["drain.jsonl.gz", "--config", "new.yaml"]).ends(8);
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| hook ")).collect();
    assert_eq!(
        rows,
        ["| hook before-drain of policy first | done after 0s | not called |"],
        "{text}"
    );
}

#[test]
fn what_no_recording_has_is_named() {
    let dir = tempfile::tempdir().unwrap();
    // A second policy stands behind the changed one, and a pod never left.
    let asked = |line: &mut Value| {
        with_label(line);
        if let Some(policies) = line.pointer_mut("/header/request/policies") {
            let second = json!({"name": "second", "planner": true, "phases": [], "node_selector": {}});
            policies.as_array_mut().unwrap().push(second);
        }
    };
    let cancel = json!({"turn": {
        "inputs": [[1_795_700_951_432_u64, {"Event": {"Cancel": {"reason": "enough"}}}]], "commands": [],
    }});
    recording_with(dir.path(), "drain", Some(cancel), asked);
    let changed = format!("namespace-modes={}", component("examples/policies/keep-labelled"));
    let args = ["drain.jsonl.gz", "--policy", &changed, "--output", "json"];
    let printed: Value = serde_json::from_str(&replay(dir.path(), &args).stdout).unwrap();
    let drain = &printed["drains"][0];
    let has = |key: &str, text: &str| drain[key].as_array().unwrap().contains(&text.into());
    assert!(
        has(
            "notRecorded",
            "what policy second makes of another plan than the recorded one"
        ),
        "{printed:#}"
    );
    assert!(
        has("notModelled", "the cancel of this drain after 9s"),
        "{printed:#}"
    );
}

#[test]
fn the_json_matches_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", |_| ());
    recording(dir.path(), "uncordon", |line| {
        replaced(line, "/header/request/intent", &"Uncordon".into());
    });
    config(
        dir.path(),
        "new.yaml",
        "policies: []\ndrain:\n  sla: 3s\n  pre-flight: refuse\n",
    );
    let component = component("plugins/namespace-modes");
    let changed = format!("namespace-modes={component}");
    let mut schema = Schema::new(SCHEMA);
    let files = ["drain.jsonl.gz", "uncordon.jsonl.gz", "--output", "json"];
    for more in [&["--config", "new.yaml"][..], &["--policy", &changed]] {
        let run = replay(dir.path(), &[&files[..], more].concat());
        schema.check(&serde_json::from_str(&run.stdout).unwrap());
    }
    schema.is_seen();
}

#[test]
fn what_is_wrong_is_named_with_its_fix() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", |_| ());
    config(dir.path(), "bad.yaml", "policies: []\ndrain:\n  sla: soon\n");
    let wrong = |args: &[&str]| -> Run {
        let run = replay(dir.path(), &[&["drain.jsonl.gz"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{run:#?}");
        run
    };
    for (args, error) in [
        (
            &["--config", "bad.yaml"][..],
            "error: bad.yaml:5:8: drain.sla: must be a duration such as 90s, 30m or 1h30m, from 0 to 720h, not `soon`\n",
        ),
        (
            &["--policy", "modes=new.wasm"],
            "error: --policy modes: drain.jsonl.gz has no policy of this name; it has namespace-modes: name one of these\n",
        ),
        (
            &["--policy", "new.wasm"],
            "error: --policy new.wasm: must be NAME=FILE, such as slurm=slurm.wasm\n",
        ),
    ] {
        assert_eq!(wrong(args).stderr, error);
    }
    let missing = wrong(&["--policy", "namespace-modes=new.wasm"]);
    assert!(missing.stderr.contains("new.wasm"), "{missing:#?}");
}

/// Whatever is wrong with another file.
#[test]
fn a_difference_is_told_by_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path(), "drain", |_| ());
    std::fs::write(dir.path().join("empty.jsonl.gz"), "").unwrap();
    config(dir.path(), "new.yaml", "policies: []\ndrain:\n  sla: 3s\n");
    for files in [
        ["drain.jsonl.gz", "empty.jsonl.gz"],
        ["empty.jsonl.gz", "drain.jsonl.gz"],
    ] {
        let run = replay(dir.path(), &[&files[..], &["--config", "new.yaml"]].concat());
        assert!(
            run.stderr.contains("empty.jsonl.gz is not a recording"),
            "{run:#?}"
        );
        run.ends(8);
    }
}
