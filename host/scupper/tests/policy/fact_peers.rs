//! What policies learn about the peers of a pod, and what the host reads for it.

use std::sync::Arc;
use std::time::Duration;

use scupper_api::facts::{Peer, PodSpec};
use scupper_engine::{Controller, Pod, PodPhase, PodRef, Time, Uid};
use scupper_policy::DrainFacts;
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
            uid: Uid::new(format!("uid-of-{job}")),
            missing: false,
        }),
        ..pod(number)
    }
}

/// A pod of a Job, of a group (`MARK=NAME`), of both or of neither, on another node.
fn other(name: &str, job: &str, groups: &[(&'static str, &str)]) -> Peer {
    Peer {
        id: PodRef {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: Uid::new(format!("uid-of-{name}")),
        },
        node: "node-2".to_owned(),
        phase: PodPhase::Running,
        ready: true,
        deletion: None,
        controller: Some(Uid::new(format!("uid-of-{job}"))).filter(|_| !job.is_empty()),
        groups: groups
            .iter()
            .map(|(mark, name)| (*mark, (*name).to_owned()))
            .collect(),
    }
}

/// The peers, and the scheduling groups of the node's pods.
fn cluster(peers: Vec<Peer>, groups: &[(&Pod, &[(&'static str, &str)])]) -> Arc<FakeCluster> {
    let spec = |groups: &[(&'static str, &str)]| PodSpec {
        groups: groups
            .iter()
            .map(|(mark, name)| (*mark, (*name).to_owned()))
            .collect(),
        ..PodSpec::default()
    };
    let specs = groups.iter();
    Arc::new(FakeCluster {
        peers,
        specs: specs
            .map(|(pod, groups)| (pod.id.uid.clone(), spec(groups)))
            .collect(),
        ..FakeCluster::default()
    })
}

#[tokio::test]
async fn a_planner_learns_of_pods_of_the_same_controller_or_scheduling_group() {
    let pods = [controlled(1, "train"), controlled(2, "train"), pod(3), pod(4)];
    let waiting = Peer {
        node: String::new(),
        phase: PodPhase::Pending,
        ready: false,
        ..other("waiting", "train", &[("kueue", "ring"), ("native", "workers")])
    };
    let ending = Peer {
        deletion: Some(Time::from_millis(1)),
        ..other("ending", "other", &[("native", "workers")])
    };
    let ended = Peer {
        phase: PodPhase::Succeeded,
        ..other("ended", "train", &[("native", "workers")])
    };
    let cluster = cluster(
        vec![
            waiting,
            ending,
            ended,
            other("stranger", "other", &[]),
            // Another mark with the same name.
            other("namesake", "", &[("kueue", "workers")]),
            other("nothing", "", &[]),
        ],
        &[
            (&pods[0], &[("native", "workers"), ("kueue", "ring")]),
            (&pods[2], &[("native", "alone")]),
        ],
    );
    let policies = load(&[asks("peers\npeers")], &cluster).await.unwrap();
    let waiting = r#"waiting "" PodPhase::Pending "#;
    let ending = r#"ending "node-2" PodPhase::Running ready terminating"#;
    let controllers = format!(r#"train ["uid-0001", "uid-0002"]: {waiting}"#);
    let groups = [
        format!(r#"ring ["uid-0001"]: {waiting}"#),
        r#"alone ["uid-0003"]: "#.to_owned(),
        format!(r#"workers ["uid-0001"]: {waiting}, {ending}"#),
    ];
    let once = format!("{controllers}; {}", groups.join(" | "));
    assert_eq!(learned(&policies, &pods, None).await, format!("{once}; {once}"));
    assert_eq!(asked(&cluster), ["pods of node-1", "all pods of shop"]);
}

#[tokio::test]
async fn the_next_plan_reads_the_pods_again() {
    let pods = [controlled(1, "train")];
    let cluster = cluster(vec![other("worker", "train", &[])], &[]);
    let policies = load(&[asks("peers")], &cluster).await.unwrap();
    let mut facts = DrainFacts::default();
    for (chain, requests) in [
        (1, vec!["pods of node-1", "all pods of shop"]),
        (2, vec!["pods of node-1", "all pods of shop"]),
    ] {
        let facts = facts.of_plan(chain, Time::from_millis(1_000));
        let once = learned(&policies, &pods, Some(&facts)).await;
        assert_eq!(
            once,
            r#"train ["uid-0001"]: worker "node-2" PodPhase::Running ready; "#
        );
        assert_eq!(learned(&policies, &pods, Some(&facts)).await, once);
        assert_eq!(asked(&cluster), requests);
    }
}

#[tokio::test]
async fn only_namespaces_with_groups_are_read_and_by_label_where_labels_name_the_groups() {
    let in_bank = |number| {
        let mut pod = controlled(number, "ledger");
        pod.id.namespace = "bank".to_owned();
        pod
    };
    let mut labelled = [controlled(1, "train"), controlled(2, "train")];
    for (pod, group) in labelled.iter_mut().zip(["bert", "gpt"]) {
        pod.labels.insert("kueue".to_owned(), group.to_owned());
    }
    let [first, second] = labelled;
    let pods = [first, second, in_bank(3)];
    let marks: &[(&Pod, &[(&'static str, &str)])] =
        &[(&pods[0], &[("kueue", "bert")]), (&pods[1], &[("kueue", "gpt")])];
    let cluster = cluster(vec![other("worker", "", &[("kueue", "bert")])], marks);
    let policies = load(&[asks("peers groups")], &cluster).await.unwrap();
    let reported = learned(&policies, &pods, None).await;
    assert_eq!(reported.matches("worker").count(), 1, "{reported}");
    assert_eq!(
        asked(&cluster),
        ["pods of node-1", r#"pods of shop with kueue {"bert", "gpt"}"#]
    );
}

/// A node of 500 pods of a workload with 10,000: each peer is passed once, not once for each pod.
#[tokio::test]
async fn a_namespace_of_10_000_pods_has_room() {
    let pods: Vec<Pod> = (0..500).map(|number| controlled(number, "train")).collect();
    let many = (0..10_000).map(|number| other(&format!("train-7d4b9c6f5d-{number:05}"), "train", &[]));
    let cluster = cluster(many.collect(), &[]);
    let policies = load(&[asks("peers count")], &cluster).await.unwrap();
    assert_eq!(learned(&policies, &pods, None).await, "10000");
    assert_eq!(asked(&cluster), ["pods of node-1", "all pods of shop"]);
}

#[tokio::test]
async fn what_one_call_learns_about_peers_has_a_limit() {
    // With 123 bytes each: those of one workload are less than 8 MiB, those of two are more.
    let name = "x".repeat(50);
    let many = |workload: &'static str| {
        let name = name.clone();
        (0..60_000).map(move |number| other(&format!("{name}{workload}{number:05}"), workload, &[]))
    };
    let spec = PolicySpec {
        limits: Limits {
            memory: 512 * 1024 * 1024,
            plan_cpu: Duration::from_secs(60),
            ..Limits::default()
        },
        ..asks("peers count")
    };
    let cluster = cluster(many("a").chain(many("b")).collect(), &[]);
    let policies = load(&[spec], &cluster).await.unwrap();
    assert_eq!(learned(&policies, &[controlled(1, "a")], None).await, "60000");
    let reported = learned(&policies, &[controlled(1, "a"), controlled(2, "b")], None).await;
    assert!(
        reported.starts_with("one call may ask for 256 namespaces besides those of its pods"),
        "{reported}"
    );
}
