//! A cluster in a file, read by the cluster edge.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use scupper_api::Change;
use scupper_api::facts::PeerSelection;
use scupper_cluster::{Cluster, ConnectOptions, ReadError};
use scupper_engine::{Event, Time};
use scupper_saved_cluster::SavedCluster;
use serde_json::{Value, json};
use tokio::time::timeout;

fn node(name: &str, pool: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": pool}}})
}

fn pod(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": name, "uid": name},
        "spec": {"nodeName": node}})
}

/// Two nodes in a list as kubectl prints it, and pods in one as the API has it, read in pages of one.
fn cluster() -> Cluster {
    let mut pods = [pod("web", "a"), pod("db", "b"), pod("cart", "a")];
    for pod in &mut pods {
        pod.as_object_mut().unwrap().remove("kind");
        pod.as_object_mut().unwrap().remove("apiVersion");
    }
    let documents = vec![
        json!({"apiVersion": "v1", "kind": "List", "items": [node("a", "x"), node("b", "y")]}),
        json!({"apiVersion": "v1", "kind": "PodList", "items": pods}),
    ];
    let saved = SavedCluster::of(documents).unwrap();
    let options = ConnectOptions {
        page_size: 1,
        ..ConnectOptions::default()
    };
    saved.handle(options)
}

#[tokio::test]
async fn objects_are_read_by_name_by_label_and_by_field() {
    let cluster = cluster();
    assert_eq!(cluster.nodes().await.unwrap().len(), 2);
    assert_eq!(cluster.nodes_with("pool in (y, z)").await.unwrap(), ["b"]);
    assert_eq!(cluster.node("a").await.unwrap().unwrap().labels["pool"], "x");
    assert_eq!(cluster.node("c").await.unwrap(), None);
    let pods = cluster.pods("a").await.unwrap();
    let names: Vec<_> = pods.iter().map(|pod| pod.id.name.as_str()).collect();
    assert_eq!(names, ["cart", "web"], "as an API server: by name");
}

#[test]
fn it_was_saved_when_the_newest_of_its_times_was() {
    let moment = |node: &Value, pod: &Value| {
        let saved = SavedCluster::of(vec![node.clone(), pod.clone()]).unwrap();
        saved.saved_at().map(Time::as_millis)
    };
    let (mut node, mut pod) = (node("a", "x"), pod("web", "a"));
    assert_eq!(moment(&node, &pod), None);
    node["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:10Z");
    assert_eq!(moment(&node, &pod), Some(10_000));
    let ready =
        json!({"type": "Ready", "lastHeartbeatTime": "1970-01-01T00:00:20Z", "lastTransitionTime": null});
    node["status"] = json!({"conditions": [ready]});
    assert_eq!(moment(&node, &pod), Some(20_000));
    // It ends later than the file was saved.
    pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:55Z");
    assert_eq!(moment(&node, &pod), Some(20_000));
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(moment(&node, &pod), Some(25_000));
}

/// Such as two lists of `kubectl`, one behind the other.
#[tokio::test]
async fn what_a_file_has_twice_is_there_once() {
    let documents = vec![node("a", "x"), pod("web", "a"), node("a", "x"), pod("web", "a")];
    let cluster = SavedCluster::of(documents)
        .unwrap()
        .handle(ConnectOptions::default());
    assert_eq!(cluster.nodes().await.unwrap().len(), 1);
    assert_eq!(cluster.pods("a").await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_the_file_has_no_objects_of_may_not_be_read() {
    let read = cluster().local_claims("a", &["data"].map(claim).into()).await;
    let Err(ReadError::NotSaved { message }) = read else {
        panic!("{read:?}")
    };
    let told = "the file has no persistentvolumeclaims; save them as well: kubectl get ...,persistentvolumeclaims -A -o json";
    assert_eq!(message, told);
}

#[tokio::test]
async fn a_file_without_budgets_is_read_as_a_cluster_with_none() {
    let documents = vec![node("a", "x"), pod("web", "a")];
    let saved = SavedCluster::of(documents.clone()).unwrap();
    assert!(!saved.has_budgets());
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "shop", "name": "web"}});
    let with_budget = SavedCluster::of([documents, vec![budget]].concat()).unwrap();
    assert!(with_budget.has_budgets());
    for (saved, budgets) in [(saved, 0), (with_budget, 1)] {
        let watch = saved.handle(ConnectOptions::default()).watch("a");
        let listed = watch.filter_map(async |event| match event {
            Event::Budgets(all) => Some(all.len()),
            _ => None,
        });
        let listed = timeout(Duration::from_millis(900), pin!(listed).next()).await;
        assert_eq!(listed.unwrap(), Some(budgets));
    }
}

#[tokio::test]
async fn peers_are_the_pods_that_have_not_ended() {
    let mut ended = pod("done", "a");
    ended["status"] = json!({"phase": "Succeeded"});
    let documents = vec![node("a", "x"), pod("web", "a"), pod("db", "b"), ended];
    let cluster = SavedCluster::of(documents)
        .unwrap()
        .handle(ConnectOptions::default());
    let selection = PeerSelection {
        namespace: "shop".to_owned(),
        ..PeerSelection::default()
    };
    let mut changes = pin!(cluster.peer_changes(&selection));
    let Some(Change::Listed(peers)) = changes.next().await else {
        panic!("no list")
    };
    let names: Vec<_> = peers.iter().map(|peer| peer.id.name.as_str()).collect();
    assert_eq!(names, ["db", "web"]);
}

fn claim(name: &str) -> scupper_engine::VolumeClaim {
    scupper_engine::VolumeClaim {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn what_is_no_cluster_is_refused() {
    let wrong = |documents: &[Value]| SavedCluster::of(documents.to_vec()).unwrap_err().to_string();
    let has_no =
        |what: &str| format!("it has no {what}; print them with `kubectl get nodes,pods,... -A -o json`");
    assert_eq!(wrong(&[node("a", "x")]), has_no("pods"));
    assert_eq!(wrong(&[pod("web", "a")]), has_no("nodes"));
    let no_field = |what: &str| format!("an object has no {what}; print them with `kubectl get ... -o json`");
    assert_eq!(wrong(&[json!({"kind": "Node"})]), no_field("apiVersion"));
    assert_eq!(wrong(&[json!({"apiVersion": "v1"})]), no_field("kind"));
    let nameless = json!({"apiVersion": "v1", "kind": "Node", "metadata": {}});
    assert_eq!(wrong(&[nameless]), no_field("metadata.name"));
}

/// A forecast plans hundreds of nodes, each with watches of its own.
#[tokio::test(start_paused = true)]
async fn a_watch_begins_at_once_with_all_that_there_is() {
    let cluster = cluster();
    let begun = tokio::time::Instant::now();
    let mut events = pin!(cluster.watch("a"));
    let pods = loop {
        if let Event::Pods(pods) = events.next().await.unwrap() {
            break pods;
        }
    };
    assert_eq!(begun.elapsed(), Duration::ZERO, "it was asked for twice");
    let names: Vec<_> = pods.iter().map(|pod| pod.id.name.as_str()).collect();
    assert_eq!(names, ["cart", "web"]);
}
