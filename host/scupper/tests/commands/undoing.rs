//! What a policy has not undone is named until it has: by the end of the drain or uncordon, one Event, `status`, and a driver's
//! metric.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use scupper_simulator::api::{Forbidden, objects};
use serde_json::{Value, json};

use crate::guests::guest;
use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Run};

const LEASES: &str = "leases.coordination.k8s.io";
const STILL: &str = "policy slurm must still undo its part of the drain";
const NEXT: &str = "next: scupper uncordon worker-1 --local --config scupper.yaml";

/// A configuration with the policy `slurm`; `keys`: of its `config`.
pub(crate) fn config(rig: &Rig, keys: &[(&str, &str)]) -> String {
    let file = rig.dir.path().join("scupper.yaml");
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, value)| format!("{key}: \"{value}\""))
        .collect();
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1
kind: Configuration
policies:
  - name: slurm
    module: {}
    config: {{{}}}
",
        guest("undoes").display(),
        keys.join(", ")
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn drain(rig: &Rig, file: &str) -> Run {
    rig.run(&["drain", "worker-1", "--local", "--config", file])
}

fn uncordon(rig: &Rig, file: &str) -> Run {
    rig.run(&["uncordon", "worker-1", "--local", "--config", file])
}

/// It has drained the node, in which nothing is to be evicted.
fn drained() -> (Rig, String) {
    let rig = Rig::new();
    let file = config(&rig, &[]);
    let run = drain(&rig, &file);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(
        !run.stdout.contains("undo"),
        "the node is out of service: {run:#?}"
    );
    let left = "the node stays cordoned, and what policy slurm may have done stays; to give it back: scupper uncordon \
                worker-1 --local --config scupper.yaml";
    assert!(run.stdout.contains(left), "{run:#?}");
    (rig, file)
}

fn kubectl_uncordon(rig: &Rig) {
    edit_node(rig, |node| node["spec"]["unschedulable"] = json!(false));
}

fn edit_node(rig: &Rig, change: impl Fn(&mut Value)) {
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", |node| change(node)))
        .unwrap();
}

fn delete_node(rig: &Rig) {
    rig.inside(|| rig.api.store().delete("nodes", "", "worker-1"));
}

/// The notes of the Events of this reason.
fn notes(rig: &Rig, reason: &str) -> Vec<String> {
    let events = rig.objects("events.events.k8s.io").into_iter();
    let of_reason = events.filter(|event| event["reason"] == reason);
    of_reason
        .map(|event| event["note"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn condition(rig: &Rig, kind: &str) -> Value {
    let node = rig.node("worker-1");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found
        .map(|condition| condition["status"].clone())
        .unwrap_or_default()
}

/// `status` names it with these words, for people and for programs.
#[track_caller]
fn status_names(rig: &Rig, words: &str) {
    let status = rig.run(&["status", "worker-1"]).stdout;
    for text in [&format!("undo       {STILL}: {words}"), NEXT] {
        assert!(status.contains(text), "{text}: {status}");
    }
    let json = rig.run(&["status", "worker-1", "--output", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["toUndo"], json!(["slurm"]), "{json}");
    assert_eq!(json["whyNotUndone"], json!({ "slurm": words }), "{json}");
}

/// An uncordon with the configuration runs the hooks, and nothing is left.
#[track_caller]
fn an_uncordon_clears(rig: &Rig) {
    let file = config(rig, &[]);
    let run = uncordon(rig, &file);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("1 hook step"), "its hook runs: {run:#?}");
    let status = rig.run(&["status", "worker-1"]).stdout;
    assert!(!status.contains("undo"), "{status}");
    assert_eq!(rig.mark("worker-1"), None);
    assert_eq!(rig.objects(LEASES), [Value::Null; 0]);
}

#[test]
fn a_cancel_that_the_policy_cannot_follow_names_it_until_an_uncordon() {
    for (answer, words) in [
        ("failed|the token is expired", "the token is expired"),
        (
            "pending|slurmctld is down|slurm-worker-3",
            "slurmctld is down; waits for slurm-worker-3 (an answer)",
        ),
    ] {
        let rig = Rig::new();
        let keys = [("before-drain", "pending|jobs run|job 21"), ("on-cancel", answer)];
        let file = config(&rig, &keys);
        rig.apply(rig.pod("web", "worker-1"));
        let mut running = rig.start(&["drain", "worker-1", "--local", "--config", &file]);
        running.prints("jobs run");
        running.signal(Signal::INT);
        let run = running.ended();
        assert!(!rig.is_cordoned("worker-1"), "{run:#?}");
        let end = format!("undo     attention: {STILL}: {words}; {NEXT}");
        assert!(run.stdout.contains(&end), "{end}: {run:#?}");
        let cancelled = notes(&rig, "Cancelled");
        assert!(
            matches!(&cancelled[..], [note] if note.contains(&format!("{STILL}: {words}; to undo it"))),
            "{cancelled:?}"
        );
        status_names(&rig, words);
        an_uncordon_clears(&rig);
    }
}

#[test]
fn an_uncordon_that_fails_or_is_interrupted_names_it_until_the_next() {
    let (rig, _) = drained();
    let file = config(&rig, &[("after-uncordon", "failed|the token is expired")]);
    let run = uncordon(&rig, &file);
    assert_eq!(run.code, Some(7), "{run:#?}");
    assert!(
        run.stdout.contains(&format!("attention: {STILL}; {NEXT}")),
        "{run:#?}"
    );
    assert_eq!(condition(&rig, "Drained"), "False", "the cordon is lifted");
    status_names(&rig, "the token is expired");

    let file = config(
        &rig,
        &[("after-uncordon", "pending|slurmctld is down|slurm-worker-3")],
    );
    let mut running = rig.start(&["uncordon", "worker-1", "--local", "--config", &file]);
    running.prints("slurmctld is down");
    running.signal(Signal::INT);
    let run = running.ended();
    assert_eq!(run.code, Some(5), "{run:#?}");
    let words = "slurmctld is down; waits for slurm-worker-3 (an answer)";
    assert!(
        run.stdout
            .contains(&format!("attention: {STILL}: {words}; {NEXT}")),
        "{run:#?}"
    );
    status_names(&rig, words);
    an_uncordon_clears(&rig);
}

/// Otherwise the node would take pods while Slurm still drains it.
#[test]
fn an_uncordon_without_the_policy_changes_nothing_and_names_it() {
    let (rig, _) = drained();
    let run = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(run.code, Some(7), "{run:#?}");
    let refused = "PolicyFailed in 0s: policy slurm: it must undo its part of a drain of this node and is not active here";
    assert!(run.stdout.contains(refused), "{run:#?}");
    assert!(run.stdout.contains(NEXT), "{run:#?}");
    assert!(rig.is_cordoned("worker-1"));
    assert_eq!(condition(&rig, "Drained"), "True");
    kubectl_uncordon(&rig);
    let run = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(run.code, Some(7), "{run:#?}");
    status_names(&rig, "the node was uncordoned without Scupper");
    an_uncordon_clears(&rig);
}

#[test]
fn a_foreign_cordon_that_is_lifted_leaves_the_record() {
    let rig = Rig::new();
    let cordon = |node: &mut Value| node["spec"]["unschedulable"] = json!(true);
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", cordon))
        .unwrap();
    let file = config(&rig, &[]);
    assert_eq!(drain(&rig, &file).code, Some(0));
    assert!(!rig.run(&["status", "worker-1"]).stdout.contains("undo"));
    kubectl_uncordon(&rig);
    status_names(&rig, "the node was uncordoned without Scupper");
    an_uncordon_clears(&rig);
}

/// `--force` makes the cordon ours first.
#[test]
fn an_uncordon_by_force_keeps_the_record_of_a_drain_under_a_foreign_cordon() {
    let rig = Rig::new();
    rig.apply(objects::node("worker-4").cordoned());
    let file = config(&rig, &[]);
    let run = rig.run(&["drain", "worker-4", "--local", "--config", &file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let run = rig.run(&["uncordon", "worker-4", "--force"]);
    assert_eq!(run.code, Some(7), "{run:#?}");
    let run = rig.run(&["uncordon", "worker-4", "--force", "--config", &file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("1 hook step"), "{run:#?}");
    assert_eq!(rig.mark("worker-4"), None);
}

#[test]
fn a_node_that_is_deleted_and_made_anew_is_known_by_its_lease() {
    let (rig, file) = drained();
    delete_node(&rig);
    let words = "the Node was deleted or made anew, or the process that drained it was killed";
    for command in [
        &["status", "worker-1"][..],
        &["uncordon", "worker-1", "--local", "--config", &file],
    ] {
        let run = rig.run(command);
        assert_eq!(run.code, Some(4), "{run:#?}");
        let named = format!(
            "there is no node worker-1; {STILL}: {words}; to undo it: scupper uncordon worker-1 --local --config scupper.yaml"
        );
        assert!(run.stderr.contains(&named), "{run:#?}");
    }
    rig.apply(objects::node("worker-1"));
    status_names(&rig, words);
    let run = rig.run(&["uncordon", "worker-1", "--local"]);
    assert_eq!(run.code, Some(7), "{run:#?}");
    status_names(&rig, words);
    an_uncordon_clears(&rig);
}

/// Of nodes that are named, one Lease each is read.
#[test]
fn whoever_may_not_list_leases_sees_what_the_lease_of_a_named_node_says() {
    let (rig, _) = drained();
    delete_node(&rig);
    rig.apply(objects::node("worker-1"));
    rig.act_as("sre");
    rig.api.set_forbidden(Forbidden {
        user: "sre".to_owned(),
        verb: "list".to_owned(),
        resource: LEASES.to_owned(),
        ..Forbidden::default()
    });
    status_names(
        &rig,
        "the Node was deleted or made anew, or the process that drained it was killed",
    );
}

#[test]
fn a_cleanup_names_what_it_forgets() {
    let (rig, _) = drained();
    let forget = || rig.run(&["cleanup", "--node-name", "worker-1"]);
    for is_anew in [false, true] {
        if is_anew {
            drain(&rig, &config(&rig, &[]));
            delete_node(&rig);
            rig.apply(objects::node("worker-1"));
        }
        let run = forget();
        assert!(
            run.stdout.contains("left    what the policies slurm changed"),
            "{run:#?}"
        );
        assert!(run.stdout.contains("removed lease scupper/worker-1"), "{run:#?}");
        assert_eq!(rig.objects(LEASES), [Value::Null; 0]);
        assert!(!rig.run(&["status", "worker-1"]).stdout.contains("undo"));
    }
    assert!(forget().stdout.contains("nothing of ours is left"));
}

/// Nothing of it was on the node yet.
#[test]
fn a_drain_that_is_killed_in_the_first_step_of_a_hook_is_known_by_its_lease() {
    let rig = Rig::new();
    let file = config(&rig, &[("before-drain", "pending|jobs run|job 21")]);
    rig.apply(rig.pod("web", "worker-1"));
    let mut running = rig.start(&["drain", "worker-1", "--local", "--config", &file]);
    running.prints("jobs run");
    running.kill();
    delete_node(&rig);
    rig.apply(objects::node("worker-1"));
    status_names(
        &rig,
        "the Node was deleted or made anew, or the process that drained it was killed",
    );
    an_uncordon_clears(&rig);
}

/// The driver says what no drain has said: after a `kubectl uncordon`, and of a Node that was made anew.
#[test]
fn a_driver_reports_it_once_and_shows_it_in_a_metric() {
    let rig = Rig::new();
    let file = config(&rig, &[]);
    let flags = ["--config", &file, "--metrics-address", "0", "--log", "info"];
    let agent = Agent::with(&rig, false, &flags);
    let shown = r#"scupper_policy_to_undo{policy="slurm"} 1"#;
    assert!(!metrics(&agent).contains(shown));
    let run = rig.run(&asks("drain", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(notes(&rig, "PolicyMustUndo"), Vec::<String>::new());
    kubectl_uncordon(&rig);
    let note =
        format!("{STILL}: the node was uncordoned without Scupper; to undo it: scupper uncordon worker-1");
    until("the driver reports it", || {
        notes(&rig, "PolicyMustUndo") == [note.clone()]
    });
    assert!(metrics(&agent).contains(shown));
    let run = rig.run(&asks("uncordon", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.mark("worker-1"), None);
    until("the metric shows it", || !metrics(&agent).contains(shown));
    assert_eq!(notes(&rig, "PolicyMustUndo"), [note], "once");
}

/// The node would be returned to service while it is cordoned, and the new cordon would drain nothing.
#[test]
fn a_cordon_while_the_hooks_of_an_uncordon_run_drains_the_node_again() {
    let rig = Rig::new();
    let file = config(&rig, &[("after-uncordon", "pending|jobs run|job 21")]);
    let mut agent = Agent::with(&rig, false, &["--config", &file]);
    let cordon = || edit_node(&rig, |node| node["spec"]["unschedulable"] = json!(true));
    let drained = || notes(&rig, "Drained").len();
    edit_node(&rig, |node| {
        node["metadata"]["labels"] = json!({"scupper.dev/drain-on-cordon": "true"});
    });
    cordon();
    until("the cordon has drained the node", || drained() == 1);
    kubectl_uncordon(&rig);
    agent.driver.prints("after-uncordon, running: jobs run");
    rig.apply(rig.pod("web", "worker-1").takes(0.1));
    cordon();
    until("the next cordon has drained it as well", || {
        drained() == 2 && rig.pods().is_empty()
    });
    let withdrawn = notes(&rig, "Cancelled");
    assert!(
        withdrawn.len() == 1 && withdrawn[0].contains("cordoned again"),
        "{withdrawn:?}"
    );
    assert!(rig.is_cordoned("worker-1"), "it is not ours to lift");
}

/// What the driver serves at its metrics address.
fn metrics(agent: &Agent) -> String {
    let log = agent.driver.stderr();
    let served = log.lines().find(|line| line.contains("metrics are served"));
    let address = served
        .unwrap()
        .rsplit_once("address=")
        .unwrap()
        .1
        .trim()
        .to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: driver\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The driver's end of a cancelled drain reaches the terminal that asked for it.
#[test]
fn the_end_of_a_delegated_drain_also_names_it() {
    for slm in [false, true] {
        let rig = Rig::new();
        let keys = [
            ("before-drain", "pending|jobs run|job 21"),
            ("on-cancel", "failed|the token is expired"),
        ];
        let file = config(&rig, &keys);
        let _agent = Agent::with(&rig, slm, &["--config", &file]);
        rig.apply(rig.pod("web", "worker-1"));
        let mut running = rig.start(&asks("drain", &[]));
        running.prints("jobs run");
        let cancelled = rig.run(&asks("cancel", &[]));
        assert_eq!(cancelled.code, Some(0), "{cancelled:#?}");
        let run = running.ended();
        let named = format!("{STILL}: the token is expired; to undo it: scupper uncordon worker-1");
        assert!(run.stdout.contains(&named), "{run:#?}");
        let status = rig.run(&["status", "worker-1"]).stdout;
        assert!(
            status.contains(&format!("{STILL}: the token is expired")),
            "{status}"
        );
    }
}

#[test]
fn the_end_of_a_delegated_drain_names_who_keeps_the_node_out_of_service() {
    for slm in [false, true] {
        let rig = Rig::new();
        let file = config(&rig, &[]);
        let _agent = Agent::with(&rig, slm, &["--config", &file]);
        let run = rig.run(&asks("drain", &[]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        let left = "the node stays cordoned, and what policy slurm may have done stays; to give it back: scupper uncordon \
                    worker-1\n";
        assert!(run.stdout.contains(left), "{run:#?}");
    }
}

/// Its machine goes down with it, and the Node is made anew.
#[test]
fn a_driver_that_is_killed_in_a_hook_is_known_by_its_lease() {
    let rig = Rig::new();
    let file = config(&rig, &[("before-drain", "pending|jobs run|job 21")]);
    rig.apply(rig.pod("web", "worker-1"));
    let agent = Agent::with(&rig, false, &["--config", &file]);
    let mut running = rig.start(&asks("drain", &[]));
    running.prints("jobs run");
    let _rest = agent.without_driver();
    delete_node(&rig);
    rig.apply(objects::node("worker-1"));
    let status = rig.run(&["status", "worker-1"]);
    let left = "policy slurm must still undo its part of the drain: the Node was deleted or made anew, or the process \
                that drained it was killed";
    assert!(status.stdout.contains(left), "{status:#?}");
    running.kill();
}

/// It ends with "nothing has changed".
#[test]
fn a_forced_uncordon_that_is_refused_leaves_the_cordon_to_its_owner() {
    let rig = Rig::new();
    rig.apply(objects::node("worker-4").cordoned());
    let file = config(&rig, &[]);
    let run = rig.run(&["drain", "worker-4", "--local", "--config", &file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let before = rig.mark("worker-4").unwrap();
    let run = rig.run(&["uncordon", "worker-4", "--config", &file]);
    assert_eq!(run.code, Some(5), "it is a foreign cordon: {run:#?}");
    let run = rig.run(&["uncordon", "worker-4", "--force"]);
    assert_eq!(run.code, Some(7), "{run:#?}");
    let run = rig.run(&["uncordon", "worker-4", "--config", &file]);
    assert_eq!(run.code, Some(5), "it still is a foreign cordon: {run:#?}");
    assert!(rig.is_cordoned("worker-4"));
    assert_eq!(rig.mark("worker-4").unwrap()["own_cordon"], before["own_cordon"]);
}

/// A terminal's drain is killed in its hook, and the Node is made anew. `leased`: what becomes of its Lease meanwhile.
fn killed_and_made_anew(leased: impl FnOnce(&Rig)) -> (Rig, String) {
    let rig = Rig::new();
    let file = config(&rig, &[("before-drain", "pending|jobs run|job 21")]);
    rig.apply(rig.pod("web", "worker-1"));
    let mut running = rig.start(&["drain", "worker-1", "--local", "--config", &file]);
    running.prints("jobs run");
    running.kill();
    leased(&rig);
    delete_node(&rig);
    rig.apply(objects::node("worker-1"));
    (rig, file)
}

fn is_reported_by_a_driver((rig, file): (Rig, String)) {
    let _agent = Agent::with(&rig, false, &["--config", &file]);
    until("the driver reports it", || {
        !notes(&rig, "PolicyMustUndo").is_empty()
    });
}

/// The terminal was on another machine, so nothing but time shows that its process is gone.
#[test]
fn a_driver_reports_what_a_killed_terminal_elsewhere_has_left_once_its_lease_has_expired() {
    let elsewhere = |lease: &mut Value| {
        lease["spec"]["holderIdentity"] = json!("laptop");
        lease["spec"]["leaseDurationSeconds"] = json!(2);
    };
    is_reported_by_a_driver(killed_and_made_anew(|rig| {
        rig.inside(|| rig.api.store().edit(LEASES, "scupper", "worker-1", elsewhere))
            .unwrap();
    }));
}

#[test]
fn a_driver_reports_what_a_killed_terminal_on_its_machine_has_left() {
    is_reported_by_a_driver(killed_and_made_anew(|_| {}));
}

#[test]
fn a_drain_replaces_a_killed_uncordon_and_what_that_must_undo_stays_known() {
    let (rig, _) = drained();
    let file = config(
        &rig,
        &[
            ("before-uncordon", "pending|jobs run|job 21"),
            ("after-uncordon", "pending|jobs run|job 21"),
        ],
    );
    let mut running = rig.start(&["uncordon", "worker-1", "--local", "--config", &file]);
    running.prints("jobs run");
    until("its mark is on the node", || {
        rig.mark("worker-1")
            .is_some_and(|mark| mark["phase"] == "uncordoning")
    });
    running.kill();
    let left = rig.mark("worker-1").unwrap()["to_undo"].clone();
    assert!(!left.is_null());
    let run = rig.run(&["drain", "worker-1", "--local", "--config", &file]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let said = "is gone; draining the node instead";
    assert!(run.stderr.contains(said), "{run:#?}");
    let mark = rig.mark("worker-1").unwrap();
    assert_eq!(
        (&mark["intent"], &mark["to_undo"], rig.is_cordoned("worker-1")),
        (&json!("drain"), &left, true)
    );
}
