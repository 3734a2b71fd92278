//! Recorded responses: Slurm 24.11.5 (v0.0.40 to v0.0.42) and 22.05.8 (v0.0.38). One job has ended and its epilog runs,
//! another one is suspended. The same facts follow in the documented forms of the untested versions.

use serde_json::json;

use crate::slurmrestd::job::Job;
use crate::slurmrestd::node::{Load, SlurmNode};
use crate::slurmrestd::slurm_error::SlurmError;
use crate::slurmrestd::wire::Body;

const NODE: &str = "slurm-worker-0";

macro_rules! recorded {
    ($version:literal) => {
        (
            $version,
            read(include_str!(concat!("answers/", $version, "-nodes.json"))),
            read(include_str!(concat!("answers/", $version, "-jobs.json"))),
        )
    };
}

fn read(text: &str) -> Body {
    serde_json::from_str(text).unwrap()
}

fn node(fields: serde_json::Value) -> SlurmNode {
    serde_json::from_value(fields).unwrap()
}

fn job(fields: serde_json::Value) -> Job {
    serde_json::from_value(fields).unwrap()
}

#[test]
fn every_version_is_read_alike() {
    for (version, nodes, jobs) in [recorded!("v0.0.40"), recorded!("v0.0.41"), recorded!("v0.0.42")] {
        let nodes = nodes.nodes.unwrap();
        assert_eq!(nodes.len(), 2, "{version}");
        assert_eq!(
            (nodes[0].name.as_str(), nodes[0].load()),
            (NODE, Load::Busy("COMPLETING")),
            "{version}"
        );
        assert!(nodes[0].is_draining() && !nodes[1].is_draining(), "{version}");
        assert_eq!(nodes[0].reason, "scupper: node=worker-1 drain=uid: maintenance");
        assert_eq!(nodes[1].load(), Load::Free, "{version}");

        let jobs = jobs.jobs.unwrap();
        let states: Vec<_> = jobs.iter().map(|job| (job.id(), job.state())).collect();
        let states: Vec<_> = states.iter().map(|(id, state)| (*id, state.as_str())).collect();
        assert_eq!(
            states,
            [(1, "completed+completing"), (2, "suspended")],
            "{version}"
        );
        assert!(jobs.iter().all(|job| job.may_run_on(NODE)), "{version}");
        assert!(
            jobs.iter().all(|job| !job.may_run_on("slurm-worker-1")),
            "{version}"
        );
        assert_eq!((jobs[1].user.as_str(), jobs[1].name.as_str()), ("bob", "train"));
        assert_eq!(jobs[1].started(), Some(1_795_270_757_000), "{version}");
        assert_eq!(jobs[1].requeue, Some(true), "{version}");
    }
}

#[test]
fn the_old_form_is_read_as_well() {
    let (_, nodes, jobs) = recorded!("v0.0.38");
    let (nodes, jobs) = (nodes.nodes.unwrap(), jobs.jobs.unwrap());
    assert_eq!(
        (nodes[0].name.as_str(), nodes[0].load()),
        (NODE, Load::Busy("MIXED"))
    );
    assert!(jobs[0].may_run_on(NODE));
    assert_eq!(
        (jobs[0].started(), jobs[0].ends()),
        (Some(1_795_269_046_000), Some(1_795_272_646_000))
    );
    let drained = node(json!({"name": "n", "state": "idle", "state_flags": ["DRAIN"], "reason": null}));
    assert!(drained.is_draining() && drained.load() == Load::Free);
}

#[test]
fn untested_versions_are_read_as_documented() {
    // v0.0.39: the state of a job is a single word, times are plain numbers.
    let oldest =
        job(json!({"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-3]", "end_time": 1_800_000_000}));
    assert!(oldest.may_run_on("n2") && !oldest.may_run_on("n4"));
    assert_eq!(oldest.ends(), Some(1_800_000_000_000));
    // A newer one may have more: words, fields, base states.
    let newer =
        node(json!({"name": "n", "state": ["IDLE", "DRAIN", "BLOCKED", "NEW"], "reason": "", "new": [1]}));
    assert!(newer.is_draining() && newer.load() == Load::Free);
    let external = node(json!({"name": "n", "state": ["EXTERNAL", "DRAIN"]}));
    assert_eq!(external.load(), Load::Unknown);
}

#[test]
fn unexpected_forms_are_unknown_and_never_free() {
    for state in [json!(null), json!(3), json!({}), json!([]), json!([1]), json!("")] {
        let odd = node(json!({"name": "n", "state": state}));
        assert_eq!(odd.load(), Load::Unknown, "{state}");
        let odd = job(json!({"job_id": 1, "job_state": state, "nodes": "n"}));
        assert!(odd.may_run_on("n"), "{state}");
        assert!(!odd.may_run_on("m"), "{state}");
    }
    for nodes in [json!(null), json!(3), json!(["n"]), json!("")] {
        let odd = job(json!({"job_id": 1, "job_state": ["RUNNING"], "nodes": nodes}));
        assert!(odd.may_run_on("n"), "{nodes}");
    }
    for end in [
        json!(null),
        json!("x"),
        json!({"set": false, "number": 5}),
        json!({"infinite": true, "number": 5}),
    ] {
        let odd = job(json!({"job_state": ["RUNNING"], "end_time": end}));
        assert_eq!(odd.ends(), None, "{end}");
    }
}

#[test]
fn errors_of_every_form_are_errors() {
    let reported = |status, body: serde_json::Value| {
        let read: Body = serde_json::from_value(body).unwrap();
        SlurmError::of(status, &read.errors, String::new)
    };
    assert_eq!(reported(200, json!({"errors": []})), None);
    assert_eq!(reported(200, json!({"errors": null})), None);
    assert_eq!(reported(200, json!({})), None);
    let old = reported(
        500,
        json!({"errors": [{"error": "Invalid node name specified", "errno": 2018}]}),
    );
    assert_eq!(
        old,
        Some(SlurmError::NoSuchNode(
            "Invalid node name specified (2018)".to_owned()
        ))
    );
    for odd in [json!("no"), json!(["no"]), json!({"a": 1}), json!([{}])] {
        assert!(reported(200, json!({"errors": odd})).is_some(), "{odd}");
    }
}
