//! The checks before the first drain.

use scupper_sdk::{Finding, Severity, http};
use serde_json::json;

use super::fake::{Fake, NODE, OURS, error};
use crate::Slurm;
use crate::tests::slurmd;

/// `severity subject: message`
fn lines(findings: Vec<Finding>) -> Vec<String> {
    let line = |finding: Finding| {
        let severity = match finding.severity {
            Severity::Ok => "Ok",
            Severity::Warning => "Warning",
            Severity::Error => "Error",
        };
        format!("{severity} {}: {}", finding.subject, finding.message)
    };
    findings.into_iter().map(line).collect()
}

#[test]
fn a_healthy_check_changes_nothing() {
    let fake = Fake::busy();
    fake.host.config("ladder", "15m signal USR1, 1m cancel");
    let before = (fake.state(NODE), fake.reason(NODE));
    let findings = fake.host.check::<Slurm>();
    assert!(
        findings.iter().all(|finding| finding.severity == Severity::Ok),
        "{findings:?}"
    );
    let subjects: Vec<&str> = findings.iter().map(|finding| finding.subject.as_str()).collect();
    assert_eq!(
        subjects,
        [
            "token",
            "API version",
            "response limit",
            "node name",
            "rights",
            "response limit",
            "ladder"
        ]
    );
    assert_eq!((fake.state(NODE), fake.reason(NODE)), before);
    let changes: Vec<String> = fake
        .requests()
        .into_iter()
        .filter(|line| !line.starts_with("GET "))
        .collect();
    assert_eq!(changes, ["POST node/node-1 null null"], "an update of nothing");
    assert_eq!(fake.host.events(), [] as [String; 0]);
}

#[test]
fn each_problem_comes_with_a_fix() {
    for (begins, answer, subject, words, fix) in [
        (
            "GET nodes/",
            (511, 1007, "Protocol authentication error"),
            "token",
            "rejects the token",
            "scontrol token",
        ),
        (
            "GET nodes/",
            (502, 1800, "connect failure"),
            "slurmctld",
            "cannot reach slurmctld",
            "scontrol ping",
        ),
        (
            "POST",
            (500, 2010, "Invalid user id"),
            "rights",
            "only Slurm's operators may",
            "adminlevel=operator",
        ),
    ] {
        let fake = Fake::new();
        fake.serves(&[44]);
        let (status, number, text) = answer;
        fake.fault(begins, false, move || Ok(error(status, number, text)));
        let findings = fake.host.check::<Slurm>();
        let found = findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
            .unwrap();
        assert_eq!(found.subject, subject, "{findings:?}");
        assert!(
            found.message.contains(words) && found.fix.contains(fix),
            "{found:?}"
        );
    }
    for (begins, words) in [
        ("GET nodes/", "all nodes"),
        ("GET jobs/state/", "states of all jobs"),
    ] {
        let fake = Fake::new();
        fake.serves(&[44]);
        fake.fault(begins, false, || {
            Err(http::Error::TooLarge("limits: {response: 16Mi}".to_owned()))
        });
        let found = lines(fake.host.check::<Slurm>());
        assert!(
            found
                .iter()
                .any(|line| line.starts_with("Error response limit: ") && line.contains(words)),
            "{found:?}"
        );
    }
    let fake = Fake::new();
    fake.serves(&[36, 38]);
    let found = lines(fake.host.check::<Slurm>());
    assert!(found.len() == 1 && found[0].starts_with("Error API version: slurmrestd serves v0.0.38 at most"));
}

#[test]
fn the_node_is_checked_if_one_is_given() {
    let of = |keys: &[(&str, &str)]| {
        let fake = Fake::new();
        for (key, value) in keys {
            fake.host.config(key, value);
        }
        let found = lines(fake.host.check::<Slurm>());
        found
            .into_iter()
            .find(|line| line.contains(" node name: "))
            .unwrap()
    };
    assert_eq!(of(&[]), "Ok node name: node-1 is idle in Slurm");
    let table = ("slurm-node-table", "node-1=gpu-99");
    assert_eq!(
        of(&[table]),
        "Error node name: gpu-99 is not among Slurm's 2 nodes"
    );
    assert!(of(&[table, ("not-in-slurm", "ignore")]).starts_with("Warning node name: gpu-99 is not"));
    assert_eq!(
        of(&[("slurm-node", "label:nope")]),
        "Error node name: the node has no label nope"
    );
    assert!(of(&[("slurm-node", "pods")]).starts_with("Ok node name: each Slurm pod"));

    let fake = Fake::new();
    fake.node(NODE, &["IDLE", "DRAIN"], "bad disk");
    let found = lines(fake.host.check::<Slurm>());
    assert!(found.contains(&"Warning node name: node-1 is idle+drain in Slurm: bad disk".to_owned()));
    let found = lines(fake.host.check_without_node::<Slurm>());
    assert!(
        found
            .iter()
            .all(|line| line.starts_with("Ok ") && !line.contains("node name")),
        "{found:?}"
    );
    assert_eq!(fake.reason(NODE), "bad disk");
    assert_ne!(fake.reason(NODE), OURS);
}

#[test]
fn a_rung_that_this_slurm_cannot_climb_is_a_warning() {
    let fake = Fake::new();
    fake.host.config("ladder", "15m requeue");
    let found = lines(fake.host.check::<Slurm>());
    assert!(
        found.contains(
            &"Warning ladder: this slurmrestd has no v0.0.45, so it cannot requeue a job".to_owned()
        )
    );
    fake.serves(&[44, 45]);
    let found = lines(fake.host.check::<Slurm>());
    assert!(found.iter().all(|line| line.starts_with("Ok ")), "{found:?}");
    assert!(found.contains(
        &"Ok ladder: begins 15m before the deadline; drains with less time are refused".to_owned()
    ));
}

#[test]
fn through_slurm_operator_there_are_no_checks() {
    let fake = Fake::new();
    fake.host.config("way", "operator");
    fake.host.config("url", "");
    let found = fake.host.check::<Slurm>();
    assert!(
        found.iter().all(|finding| finding.subject == "configuration"),
        "{found:?}"
    );
    assert!(fake.requests().is_empty());
}

#[test]
fn heterogeneous_jobs_that_a_ladder_would_meet_are_named_with_their_other_nodes() {
    let fake = Fake::new();
    let set = |number: u64| json!({"set": true, "infinite": false, "number": number});
    for (offset, node) in [(0, NODE), (1, "node-2")] {
        fake.raw_job(json!({
            "job_id": 17 + offset, "job_state": ["RUNNING"], "nodes": node, "het_job_id": set(17),
            "het_job_offset": set(offset),
        }));
    }
    let named = || {
        let found = lines(fake.host.check::<Slurm>());
        found.into_iter().find(|line| line.contains("heterogeneous"))
    };
    assert_eq!(named(), None, "no ladder");
    fake.host.config("ladder", "15m cancel");
    let job =
        "Warning ladder: job 17+0 on node-1 is a part of heterogeneous job 17, which also runs on node-2: ";
    assert_eq!(
        named(),
        Some(format!("{job}no rung touches it (`heterogeneous: wait`)"))
    );
    fake.host.config("heterogeneous", "ladder");
    let then = "what the ladder does with a first part, Slurm does with all parts (`heterogeneous: ladder`)";
    assert_eq!(named(), Some(format!("{job}{then}")));
}

#[test]
fn a_node_without_slurm_pods_is_named_if_the_pods_are_the_slurm_nodes() {
    let fake = Fake::new();
    fake.host.config("slurm-node", "pods");
    let warns = |fake: &Fake| {
        let found = lines(fake.host.check::<Slurm>());
        found.into_iter().any(|line| {
            line.starts_with(
                "Warning hold: the node has no pod with the labels of `label`; it has no Slurm node",
            )
        })
    };
    assert!(warns(&fake));
    fake.host.pods([slurmd("worker-0", &[])]);
    assert!(!warns(&fake));
}
