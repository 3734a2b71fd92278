//! How many requests the facts of a node with many pods take.

use std::sync::Arc;

use scupper_engine::{PlanAnswer, Pod};

use crate::facts::{asked, asks, learned, load, plan_of, pods_of};
use crate::support::FakeCluster;

/// Pods of so many ReplicaSets, each in a namespace of its own.
fn scattered(namespaces: usize) -> Vec<Pod> {
    let mut pods = pods_of(namespaces);
    pods.truncate(namespaces);
    for (number, pod) in pods.iter_mut().enumerate() {
        pod.id.namespace = format!("ns-{number}");
    }
    pods
}

/// The host and not the guest decides how much is read about pods, so it is their number that limits it.
#[tokio::test]
async fn owners_and_namespaces_of_500_pods_in_500_namespaces_take_six_requests() {
    let cluster = Arc::new(FakeCluster::default());
    let questions = (0..500).map(|number| format!("namespace ns-{number}"));
    let questions: Vec<String> = questions.chain(["owners".to_owned()]).collect();
    let policies = load(&[asks(&questions.join("\n"))], &cluster).await.unwrap();
    let pods = scattered(500);
    let PlanAnswer::Refused { message } = plan_of(&policies, "p", &pods, None).await else {
        panic!("it has a plan")
    };
    assert!(!message.contains("one call may"), "{message}");
    assert_eq!(
        asked(&cluster),
        [
            "namespace ns-0",
            "namespace ns-1",
            "namespace ns-2",
            "namespaces",
            "all ReplicaSets",
            "all Deployments"
        ]
    );
}

#[tokio::test]
async fn without_the_right_to_list_all_namespaces_each_is_read_by_itself() {
    let cluster = Arc::new(FakeCluster {
        lists_no_cluster: true,
        ..FakeCluster::default()
    });
    let policies = load(&[asks("owners")], &cluster).await.unwrap();
    let reported = learned(&policies, &scattered(30), None).await;
    assert!(reported.starts_with("ReplicaSet/web0-1 Some"), "{reported}");
    let requests = asked(&cluster);
    assert_eq!(requests.first().map(String::as_str), Some("all ReplicaSets"));
    assert_eq!(requests.len(), 1 + 2 * 30, "{requests:?}");
    // Few namespaces are not worth a list of all.
    let reported = learned(&policies, &scattered(24), None).await;
    assert!(reported.starts_with("ReplicaSet/web0-1 Some"), "{reported}");
    assert_eq!(asked(&cluster).len(), 2 * 24);
}
