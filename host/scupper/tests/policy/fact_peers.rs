//! What policies learn about the peers of a pod, and what the host reads for it.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Controller, Pod, PodPhase, PodRef, Time, Uid};
use scupper_policy::{DrainFacts, PeerFact};
use scupper_policy_spec::{Limits, PolicySpec};

use crate::facts::{asked, asks, learned, load};
use crate::support::{FakeCluster, pod};

/// A pod of a Job.
fn controlled(number: usize, job: &str) -> Pod {
    Pod {
        controller: Some(Controller {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            name: job.to_owned(),
            uid: Uid(format!("uid-of-{job}")),
            missing: false,
        }),
        ..pod(number)
    }
}

/// A pod of a Job, of a group (`MARK=NAME`), of both or of neither, on another node.
fn other(name: &str, job: &str, groups: &[(&'static str, &str)]) -> PeerFact {
    PeerFact {
        pod: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid(format!("uid-of-{name}")),
        },
        node: "node-2".to_owned(),
        phase: PodPhase::Running,
        ready: true,
        deletion: None,
        controller: Some(Uid(format!("uid-of-{job}"))).filter(|_| !job.is_empty()),
        groups: groups
            .iter()
            .map(|(mark, name)| (*mark, (*name).to_owned()))
            .collect(),
    }
}

/// A pod of the call, as the list of its namespace has it.
fn listed(pod: &Pod, groups: &[(&'static str, &str)]) -> PeerFact {
    PeerFact {
        pod: pod.id.clone(),
        node: pod.node.clone(),
        controller: pod.controller.as_ref().map(|controller| controller.uid.clone()),
        ..other("", "", groups)
    }
}

fn cluster(peers: Vec<PeerFact>) -> Arc<FakeCluster> {
    Arc::new(FakeCluster {
        peers,
        ..FakeCluster::default()
    })
}

#[tokio::test]
async fn a_planner_learns_of_pods_of_the_same_controller_or_scheduling_group() {
    let pods = [controlled(1, "train"), controlled(2, "train"), pod(3), pod(4)];
    let waiting = PeerFact {
        node: String::new(),
        phase: PodPhase::Pending,
        ready: false,
        ..other("waiting", "train", &[("kueue", "ring"), ("native", "workers")])
    };
    let ending = PeerFact {
        deletion: Some(Time::from_millis(1)),
        ..other("ending", "other", &[("native", "workers")])
    };
    let cluster = cluster(vec![
        listed(&pods[0], &[("native", "workers"), ("kueue", "ring")]),
        listed(&pods[1], &[]),
        listed(&pods[2], &[("native", "alone")]),
        listed(&pods[3], &[]),
        waiting,
        ending,
        other("stranger", "other", &[]),
        // Another mark with the same name.
        other("namesake", "", &[("kueue", "workers")]),
        other("nothing", "", &[]),
    ]);
    let policies = load(&[asks("peers\npeers")], &cluster).await.unwrap();
    let first = [
        r#"web-2 "node-1" PodPhase::Running ready same-controller None"#,
        r#"waiting "" PodPhase::Pending same-controller Some("workers")"#,
        r#"ending "node-2" PodPhase::Running ready terminating Some("workers")"#,
    ];
    let second = [
        r#"web-1 "node-1" PodPhase::Running ready same-controller None"#,
        r#"waiting "" PodPhase::Pending same-controller None"#,
    ];
    let once = format!("{}; {}; ; ", first.join(", "), second.join(", "));
    assert_eq!(learned(&policies, &pods, None).await, format!("{once}; {once}"));
    assert_eq!(asked(&cluster), ["all pods of shop"]);
}

#[tokio::test]
async fn the_next_plan_reads_the_pods_again() {
    let pods = [controlled(1, "train")];
    let cluster = cluster(vec![other("worker", "train", &[])]);
    let policies = load(&[asks("peers")], &cluster).await.unwrap();
    let mut facts = DrainFacts::default();
    for chain in 1..3 {
        let facts = facts.of_plan(chain, Time::from_millis(1_000));
        let once = learned(&policies, &pods, Some(&facts)).await;
        assert_eq!(
            once,
            r#"worker "node-2" PodPhase::Running ready same-controller None"#
        );
        assert_eq!(learned(&policies, &pods, Some(&facts)).await, once);
        assert_eq!(asked(&cluster), ["all pods of shop"]);
    }
}

#[tokio::test]
async fn each_namespace_is_read_once() {
    let in_bank = |number| {
        let mut pod = controlled(number, "ledger");
        pod.id.namespace = "bank".to_owned();
        pod
    };
    let pods = [controlled(1, "train"), in_bank(2), in_bank(3)];
    let cluster = cluster(vec![other("worker", "train", &[])]);
    let policies = load(&[asks("peers")], &cluster).await.unwrap();
    let reported = learned(&policies, &pods, None).await;
    assert_eq!(reported.matches("worker").count(), 1, "{reported}");
    assert_eq!(asked(&cluster), ["all pods of shop", "all pods of bank"]);
}

#[tokio::test]
async fn what_one_call_learns_about_peers_has_a_limit() {
    let pods = [controlled(1, "train"), controlled(2, "train")];
    // With 123 bytes each: those of one pod are less than 8 MiB, those of two are more.
    let name = "x".repeat(50);
    let many = (0..60_000).map(|number| other(&format!("{name}{number:05}"), "train", &[]));
    let cluster = cluster(many.collect());
    let spec = PolicySpec {
        limits: Limits {
            memory: 512 * 1024 * 1024,
            plan_cpu: Duration::from_secs(60),
            ..Limits::default()
        },
        ..asks("peers count")
    };
    let policies = load(&[spec], &cluster).await.unwrap();
    let reported = learned(&policies, &pods, None).await;
    assert!(
        reported.starts_with("60000; one call may ask for 256 different facts with 8 MiB"),
        "{reported}"
    );
}
