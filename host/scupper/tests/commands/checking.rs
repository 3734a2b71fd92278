//! The policies' checks of their environment: `scupper doctor`, the driver at load and after a reload, `scupper policy list`.

use std::fs;
use std::path::PathBuf;

use scupper_simulator::api::Forbidden;
use serde_json::Value;

use crate::guests::guest;
use crate::kubelet_node::{Agent, until};
use crate::rig::{Rig, Run};

const CONFIG: &str = "\
apiVersion: scupper.dev/v1alpha1
kind: Configuration
policies:
";

/// A configuration with one policy `slurm` that has these findings, and one without a check.
pub(crate) fn config(rig: &Rig, findings: &[&str]) -> PathBuf {
    let file = rig.dir.path().join("scupper.yaml");
    let findings: String = findings.iter().map(|line| format!("\n        {line}")).collect();
    let text = format!(
        "{CONFIG}  - name: slurm
    module: {}
    grants: {{node-annotations: [seen.example.com/], events: [node]}}
    config:
      findings: |{findings}
  - name: waves
    module: {}
",
        guest("surrounded").display(),
        guest("waves").display()
    );
    fs::write(&file, text).unwrap();
    file
}

fn doctor(rig: &Rig, more: &[&str]) -> Run {
    let file = rig.dir.path().join("scupper.yaml");
    rig.run(&[&["doctor", "--config", file.to_str().unwrap()], more].concat())
}

#[test]
fn the_doctor_runs_each_policys_check_and_changes_nothing() {
    let rig = Rig::new();
    config(
        &rig,
        &[
            "warning|token|it expires in 2 days|renew it",
            "ok|API|v42 is served",
        ],
    );
    let mark = rig.api.mark();
    let run = doctor(&rig, &["--node", "worker-1"]);
    for line in [
        "ok    slurm         node: worker-1",
        "note  slurm         token: it expires in 2 days\ndo:                 renew it",
        "ok    slurm         API: v42 is served",
        "ok    waves         it does not check its surroundings",
    ] {
        assert!(run.stdout.contains(line), "{line}: {run:#?}");
    }
    let requests = rig.api.requests_since(mark);
    let writes = requests
        .iter()
        .filter(|it| it.method != "GET" && !it.path.contains("reviews"));
    assert_eq!(writes.count(), 0, "{requests:#?}");
}

#[test]
fn an_error_is_the_doctors_exit_code() {
    let rig = Rig::new();
    config(&rig, &["ok|API|v42 is served"]);
    let healthy = doctor(&rig, &[]);
    config(&rig, &["error|token|slurmrestd answers 401|renew the token"]);
    let ill = doctor(&rig, &[]);
    assert!(
        ill.stdout
            .contains("wrong slurm         token: slurmrestd answers 401"),
        "{ill:#?}"
    );
    assert!(
        ill.stdout.contains("ok    slurm         node: none"),
        "without --node: {ill:#?}"
    );
    assert_eq!(ill.code, Some(8), "{ill:#?}");
    assert_eq!(healthy.code, Some(0), "{healthy:#?}");
}

/// The caller may not do this.
fn forbid(rig: &Rig, verb: &str, resource: &str) {
    rig.api.set_forbidden(Forbidden {
        user_agent: String::new(),
        user: String::new(),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
    });
}

#[test]
fn the_doctor_names_the_rights_of_who_says_that_a_machine_is_off() {
    let rig = Rig::new();
    let run = rig.run(&["doctor", "--node", "worker-1"]);
    let line = "ok    machine off   the caller has the rights that `scupper drain --node-is-off` needs";
    assert!(run.stdout.contains(line), "{run:#?}");
    forbid(&rig, "delete", "pods");
    let run = rig.run(&["doctor", "--node", "worker-1"]);
    let line = "note  machine off   the caller has no right to delete pods, which `scupper drain --node-is-off` needs";
    assert!(run.stdout.contains(line), "{run:#?}");
}

#[test]
fn the_doctor_names_the_right_to_annotate_pods_if_a_policy_does() {
    const MISSING: &str = "no right to patch pods, needed for policies that annotate pods";
    let rig = Rig::new();
    forbid(&rig, "patch", "pods");
    config(&rig, &[]);
    let without = doctor(&rig, &[]);
    assert!(!without.stdout.contains(MISSING), "{without:#?}");
    let text = format!(
        "{CONFIG}  - name: marks
    module: {}
    grants: {{node-annotations: [drain.example.com/], pod-annotations: [drain.example.com/pod-]}}
",
        guest("annotates").display(),
    );
    fs::write(rig.dir.path().join("scupper.yaml"), text).unwrap();
    let run = doctor(&rig, &[]);
    for words in [MISSING, "use the component deploy/components/pods/patch"] {
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
    assert_eq!(run.code, Some(8), "{run:#?}");
}

fn check_events(rig: &Rig) -> Vec<Value> {
    let events = rig.objects("events.events.k8s.io").into_iter();
    events
        .filter(|event| event["reason"] == "PolicyCheckFailed")
        .collect()
}

#[test]
fn the_driver_checks_at_load_and_after_a_reload_and_reports_each_finding_once() {
    let rig = Rig::new();
    let error = "error|token|slurmrestd answers 401|renew the token";
    let file = config(&rig, &[error, "warning|API|v39 is old|update it"]);
    let state = rig.dir.path().join("state");
    let state = state.to_str().unwrap();
    let flags = ["--config", file.to_str().unwrap(), "--state-dir", state];
    let agent = Agent::with(&rig, false, &flags);
    until("the error is an Event of the node", || {
        check_events(&rig).len() == 1
    });
    let event = check_events(&rig).remove(0);
    assert_eq!(event["type"], "Warning", "{event}");
    let note = "policy slurm: check of token: slurmrestd answers 401; to fix it: renew the token";
    assert_eq!(event["note"], note, "{event}");
    let list = || rig.run(&["policy", "list", "--state-dir", state]).stdout;
    let expected = "slurm: error: token: slurmrestd answers 401; to fix it: renew the token\n\
                    slurm: warning: API: v39 is old; to fix it: update it";
    until("the list shows it", || list().contains(expected));
    assert!(!list().contains("waves:"), "{}", list());

    // Another revision is checked again; an unchanged finding is not reported again.
    config(&rig, &[error, "error|rights|may not drain|grant it"]);
    until("the new error is an Event", || check_events(&rig).len() == 2);
    until("the list shows the new one", || {
        list().contains("rights: may not drain")
    });
    assert!(!list().contains("v39"), "{}", list());
    let log = agent.driver.stderr();
    assert_eq!(log.matches("slurmrestd answers 401").count(), 1, "{log}");
    assert_eq!(log.matches("v39 is old").count(), 1, "{log}");

    config(&rig, &["ok|API|v42 is served"]);
    until("all is well", || {
        list().contains("slurm: its check found nothing wrong")
    });
    assert_eq!(check_events(&rig).len(), 2);
}

/// A finding stops neither the driver nor a drain.
#[test]
fn a_driver_whose_policies_find_errors_drains() {
    let rig = Rig::new();
    let file = config(&rig, &["error|token|slurmrestd answers 401|renew the token"]);
    let _agent = Agent::with(&rig, false, &["--config", file.to_str().unwrap()]);
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&crate::kubelet_node::asks("drain", &[]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("Drained"), "{run:#?}");
}

/// `plan` and `doctor` compare each policy's plan with its draft.
#[test]
fn plan_and_doctor_name_the_pods_for_which_a_later_policy_loosens() {
    let rig = Rig::new();
    rig.apply(rig.pod("report", "worker-1"));
    let file = rig.dir.path().join("scupper.yaml");
    let decides = |name: &str, verdict: &str| {
        let module = guest("decides");
        format!(
            "  - {{name: {name}, module: {}, config: {{verdict: {verdict}}}}}\n",
            module.display()
        )
    };
    let (first, second) = (decides("modes", "await completion"), decides("jobs", "evict"));
    let plan = ["plan", "worker-1", "--config", file.to_str().unwrap()];
    let loosened = "shop/report  modes: await completion; then jobs: evict";

    fs::write(&file, format!("{CONFIG}{first}{second}")).unwrap();
    let planned = rig.run(&plan);
    let lines = format!("A later policy loosens what an earlier one decided:\n  {loosened}\n");
    assert!(format!("{}\n", planned.stdout).contains(&lines), "{planned:#?}");
    let planned: Value =
        serde_json::from_str(&rig.run(&[&plan[..], &["--output", "json"]].concat()).stdout).unwrap();
    let found = &planned["loosened"];
    assert_eq!(
        (&found[0]["earlier"]["policy"], &found[0]["later"]["policy"]),
        (&"modes".into(), &"jobs".into())
    );
    let run = doctor(&rig, &["--node", "worker-1"]);
    let line = format!("note  chain         a later policy loosens: {loosened}\ndo: ");
    assert!(run.stdout.contains(&line), "{run:#?}");
    let run = doctor(&rig, &[]);
    assert!(run.stdout.contains("depends on the pods of a node"), "{run:#?}");

    fs::write(&file, format!("{CONFIG}{second}{first}")).unwrap();
    let planned = rig.run(&plan);
    assert!(!planned.stdout.contains("loosens"), "{planned:#?}");
    let run = doctor(&rig, &["--node", "worker-1"]);
    assert!(
        run.stdout.contains("ok    chain         no policy loosens"),
        "{run:#?}"
    );
}
