//! Two Kubernetes clusters, or two nodes, that share one Slurm.

use scupper_sdk::{Outcome, Phase, Policy, Severity};

use super::fake::{Fake, NODE, OURS};
use crate::Slurm;

#[test]
fn an_uncordon_does_not_undrain_the_node_of_that_name_in_another_cluster() {
    let fake = Fake::new();
    fake.run_until_stable();
    let theirs = OURS.replace("uid-of-cluster", "uid-of-another");
    fake.node("node-2", &["IDLE", "DRAIN"], &theirs);
    fake.host.drain_named("maintenance-complete");
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
    assert_eq!(
        (fake.state("node-2"), fake.reason("node-2")),
        (vec!["IDLE".to_owned(), "DRAIN".to_owned()], theirs)
    );
}

#[test]
fn a_configured_name_stands_for_the_cluster() {
    let fake = Fake::new();
    fake.host.config("cluster", "prod-eu");
    fake.run_until_stable();
    assert!(
        fake.reason(NODE)
            .starts_with("scupper: node=node-1 cluster=prod-eu drain=")
    );
    fake.host.cluster_uid("uid-of-another");
    assert_eq!(fake.step(Phase::OnCancel), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE"]);
    fake.host.config("cluster", "prod eu");
    assert_eq!(Slurm::check_config()[0].key, "cluster");
}

#[test]
fn without_the_clusters_identity_nothing_changes() {
    let fake = Fake::new();
    fake.host.outage(Some("namespaces \"kube-system\" is forbidden"));
    for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
        fake.fails(phase, false, "or set `cluster`");
    }
    assert!(fake.requests().iter().all(|line| line.starts_with("GET ")));
    let findings = fake.host.check::<Slurm>();
    let found = findings.iter().find(|found| found.subject == "cluster").unwrap();
    assert_eq!(found.severity, Severity::Error);
    assert!(found.fix.contains("facts/cluster"), "{found:?}");
}

#[test]
fn a_node_that_is_drained_for_another_kubernetes_node_refuses_the_drain() {
    for theirs in [
        OURS.replace("node-1", "node-4"),
        OURS.replace("uid-of-cluster", "uid-of-another"),
    ] {
        let fake = Fake::new();
        fake.node(NODE, &["IDLE", "DRAIN"], &theirs);
        for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
            if phase == Phase::BeforeDrain {
                fake.host.cordon(false);
            }
            fake.fails(
                phase,
                true,
                "node-1 is drained in Slurm for another Kubernetes node: scupper: ",
            );
        }
        assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
        assert_eq!(fake.reason(NODE), theirs);
        let events = fake.host.events();
        assert!(
            events.len() == 1 && events[0].contains("for another Kubernetes node"),
            "{events:?}"
        );
        let findings = fake.host.check::<Slurm>();
        let found = findings
            .iter()
            .find(|found| found.subject == "node name")
            .unwrap();
        assert_eq!(found.severity, Severity::Error, "{found:?}");
    }
}

#[test]
fn a_node_that_is_no_longer_mapped_is_named_and_kept() {
    let fake = Fake::new();
    fake.run_until_stable();
    fake.host.config("slurm-node-table", "node-1=node-2");
    fake.host.drain_named("maintenance-complete");
    assert_eq!(fake.step(Phase::AfterUncordon), Outcome::Done);
    assert_eq!(fake.state(NODE), ["IDLE", "DRAIN"]);
    let events = fake.host.events();
    assert!(
        events
            .iter()
            .any(|event| event.contains("`slurm-node` no longer names it")),
        "{events:?}"
    );
}

#[test]
fn a_table_with_duplicates_is_refused() {
    let fake = Fake::new();
    for (table, words) in [
        (
            "node-4=gpu-4,node-5=gpu-4",
            "node-4 and node-5 cannot both be gpu-4",
        ),
        ("node-4=gpu-4,node-4=gpu-5", "node-4 has two names"),
        ("node-4", "must be NODE=NAME"),
    ] {
        fake.host.config("slurm-node-table", table);
        let problems = Slurm::check_config();
        assert!(problems[0].message.contains(words), "{problems:?}");
    }
}
