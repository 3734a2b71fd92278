//! Valid and invalid configurations.

use scupper_sdk::{
    Outcome, Phase, Policy, Subject,
    testing::{Host, pod},
};

use super::{busy_host, slurmd};
use crate::Slurm;

#[test]
fn an_empty_configuration_is_valid() {
    let _host = Host::new();
    assert_eq!(Slurm::check_config(), []);
}

#[test]
fn a_wrong_value_is_reported_with_the_valid_ones() {
    for (key, value, words) in [
        ("hold", "nodes", "`slurm-pods`"),
        ("label", "slurmd", "app.kubernetes.io/name=slurmd"),
        ("label", " , ", "app.kubernetes.io/name=slurmd"),
        ("on-failure", "rollback", "`undo`"),
        ("poll-seconds", "soon", "`soon`"),
        ("poll-seconds", "0", "from 1 to 300"),
        ("poll-seconds", "301", "from 1 to 300"),
        ("poll-second", "5", "poll-seconds"),
    ] {
        let host = busy_host();
        host.config(key, value);
        let problems = Slurm::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == key,
            "{key}={value}: {problems:?}"
        );
        assert!(problems[0].message.contains(words), "{key}={value}: {problems:?}");
        // The host does not load it like this; if it did, no pod would be evicted.
        let outcome = host.step::<Slurm>(Phase::BeforeDrain, Subject::Node);
        assert!(matches!(outcome, Outcome::Failed(_)), "{key}={value}");
        assert!(host.plan::<Slurm>().is_err(), "{key}={value}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let host = Host::new();
    host.config("hold", "x");
    host.config("label", "x");
    host.config("poll-seconds", "x");
    assert_eq!(Slurm::check_config().len(), 3);
}

#[test]
fn labels_and_namespaces_select_slurm_pods() {
    let worker = slurmd("worker-0", &["Mixed"]).with_label("app.kubernetes.io/component", "worker");
    for (label, namespace, covered) in [
        ("app.kubernetes.io/name=slurmd", "", true),
        (
            "app.kubernetes.io/name=slurmd, app.kubernetes.io/component=worker",
            "",
            true,
        ),
        (
            "app.kubernetes.io/name=slurmd,app.kubernetes.io/component=login",
            "",
            false,
        ),
        ("app.kubernetes.io/name=slurmd", "hpc, slurm", true),
        ("app.kubernetes.io/name=slurmd", "hpc", false),
    ] {
        let host = Host::new();
        host.config("label", label);
        host.config("namespace", namespace);
        host.pods([worker.clone(), pod("shop/cart")]);
        let waits = host.step::<Slurm>(Phase::BeforeDrain, Subject::Node) != Outcome::Done;
        assert_eq!(waits, covered, "{label} {namespace}");
    }
}

#[test]
fn the_poll_interval_is_configurable() {
    let host = busy_host();
    host.config("poll-seconds", "30");
    let outcome = host.step::<Slurm>(Phase::BeforeDrain, Subject::Node);
    assert!(matches!(outcome, Outcome::Pending(pending) if pending.again_after == 30_000));
}
