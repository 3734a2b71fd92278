//! A cluster in a file.

use scupper_cluster::{Cluster, ConnectOptions, ReadError, SavedCluster};
use serde_json::{Value, json};

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
    Cluster::saved(saved, options)
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
    assert_eq!(names, ["web", "cart"]);
}

#[tokio::test]
async fn what_the_file_has_no_objects_of_may_not_be_read() {
    let read = cluster().local_claims("a", &["data"].map(claim).into()).await;
    let Err(ReadError::Forbidden { message, .. }) = read else {
        panic!("{read:?}")
    };
    assert_eq!(message, "the file has no v1/persistentvolumeclaims");
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
    assert!(wrong(&[node("a", "x")]).starts_with("it has no pods"));
    assert!(wrong(&[pod("web", "a")]).starts_with("it has no nodes"));
    assert!(wrong(&[json!({"kind": "Node"})]).starts_with("an object has no apiVersion"));
    let nameless = json!({"apiVersion": "v1", "kind": "Node", "metadata": {}});
    assert!(wrong(&[nameless]).starts_with("an object has no metadata.name"));
}
