//! All nodes and pods, read for where replacements can run.

use std::collections::BTreeSet;

use scupper_cluster::ReadError;
use scupper_placement::Placement;
use serde_json::{Value, json};

use crate::script::{Script, cluster};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const SERVICES: &str = "/api/v1/services";
const CLAIM: &str = "/api/v1/namespaces/shop/persistentvolumeclaims/data";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn drained() -> BTreeSet<String> {
    BTreeSet::from(["a".to_owned()])
}

fn page(items: &[Value], token: &str) -> Value {
    json!({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})
}

fn node(name: &str, cpu: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"host": name}},
        "status": {"allocatable": {"cpu": cpu, "pods": "9"}}})
}

fn pod(name: &str, node: &str, volumes: &Value) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name, "uid": name, "labels": {"tier": "shop"}},
        "spec": {"nodeName": node, "volumes": volumes,
            "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name}, "spec": spec})
}

/// Answers with nodes a and b, a Service that selects pods, a pod of each and a pod that has ended.
async fn nodes_and_pods(server: &mut Script, volumes: Value) {
    let call = server.expect("GET", NODES).await;
    call.answer(200, page(&[node("a", "9"), node("b", "2")], ""));
    let call = server.expect("GET", SERVICES).await;
    let selects = json!({"selector": {"tier": "shop"}});
    let elsewhere = json!({"type": "ExternalName", "selector": {"tier": "shop"}});
    let services = [
        ("shop", selects),
        ("by-hand", json!({})),
        ("elsewhere", elsewhere),
    ];
    call.answer(200, page(&services.map(|(name, spec)| service(name, &spec)), ""));
    let mut ended = pod("ended", "b", &json!([]));
    ended["status"]["phase"] = json!("Succeeded");
    let call = server.expect("GET", PODS).await;
    assert_eq!(call.query("continue"), None);
    assert_eq!(call.query("fieldSelector"), None);
    call.answer(200, page(&[pod("web", "a", &volumes), ended], "more"));
    let call = server.expect("GET", PODS).await;
    assert_eq!(call.query("continue"), Some("more"));
    call.answer(200, page(&[pod("db", "b", &json!([]))], ""));
}

#[tokio::test(start_paused = true)]
async fn pods_of_drained_nodes_are_kept_apart_from_those_that_take_room() {
    let (cluster, mut server) = cluster();
    let drained = drained();
    let (room, ()) = tokio::join!(cluster.room(&drained), nodes_and_pods(&mut server, json!([])));
    let room = room.unwrap();
    assert_eq!(room.volumes_unread, None);
    assert_eq!(room.scene.nodes(), 2);
    let [web] = &room.pods[..] else {
        panic!("{:#?}", room.pods)
    };
    assert_eq!((web.uid.as_str(), web.node.as_str()), ("web", "a"));
    // Both pods that run are ready, wherever they are; the others select no pods.
    let labels = &web.newcomer.resident.labels;
    let services = room.services.as_ref().unwrap();
    let ready = services
        .of("shop", labels)
        .map(|service| (service.name.as_str(), service.ready));
    assert_eq!(ready.collect::<Vec<_>>(), [("shop", 2)]);
    assert_eq!(services.of("other", labels).count(), 0);
    // One CPU of b is used, so one of two such pods fits.
    let newcomers = vec![web.newcomer.clone(); 2];
    let placed = room.scene.trial(["a"], []).place(&newcomers);
    let fits: Vec<_> = placed
        .iter()
        .map(|one| matches!(one, Placement::Fits { node } if node == "b"))
        .collect();
    assert_eq!(fits, [true, false]);
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn the_reach_of_a_volume_is_known_unless_it_may_not_be_read() {
    let (cluster, mut server) = cluster();
    let drained = drained();
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let (room, ()) = tokio::join!(cluster.room(&drained), async {
        nodes_and_pods(&mut server, volumes.clone()).await;
        let call = server.expect("GET", CLAIM).await;
        call.answer(
            200,
            json!({"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv"}}),
        );
        let host = json!({"key": "host", "operator": "In", "values": ["a"]});
        let terms = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}});
        let volume = json!({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": terms}});
        let call = server.expect("GET", VOLUMES).await;
        call.answer(200, page(&[volume], ""));
    });
    let room = room.unwrap();
    let placed = room
        .scene
        .trial(["a"], [])
        .place(&[room.pods[0].newcomer.clone()]);
    let [Placement::Nowhere { refusals, .. }] = &placed[..] else {
        panic!("{placed:?}")
    };
    assert_eq!(
        refusals.to_string(),
        "of 2 nodes, 1 cannot reach its volume, 1 is to be drained"
    );

    let (room, ()) = tokio::join!(cluster.room(&drained), async {
        nodes_and_pods(&mut server, volumes).await;
        let call = server.expect("GET", CLAIM).await;
        call.fail(403, "Forbidden", "claims are not for you");
    });
    let room = room.unwrap();
    assert!(matches!(room.volumes_unread, Some(ReadError::Forbidden { .. })));
    let placed = room
        .scene
        .trial(["a"], [])
        .place(&[room.pods[0].newcomer.clone()]);
    assert!(matches!(placed[..], [Placement::Fits { .. }]), "{placed:?}");
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_list_pods_there_is_no_room_to_look_at() {
    let (cluster, mut server) = cluster();
    let drained = drained();
    let (room, ()) = tokio::join!(cluster.room(&drained), async {
        server.expect("GET", NODES).await.answer(200, page(&[], ""));
        server.expect("GET", SERVICES).await.answer(200, page(&[], ""));
        let call = server.expect("GET", PODS).await;
        call.fail(403, "Forbidden", "pods are not for you");
    });
    let error = room.unwrap_err().to_string();
    assert!(error.starts_with("no right to list pods: "), "{error}");
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_list_services_there_is_room_all_the_same() {
    let (cluster, mut server) = cluster();
    let drained = drained();
    let (room, ()) = tokio::join!(cluster.room(&drained), async {
        server.expect("GET", NODES).await.answer(200, page(&[], ""));
        let call = server.expect("GET", SERVICES).await;
        call.fail(403, "Forbidden", "services are not for you");
        server.expect("GET", PODS).await.answer(200, page(&[], ""));
    });
    let error = room.unwrap().services.unwrap_err().to_string();
    assert!(error.starts_with("no right to list services: "), "{error}");
    server.finish(cluster).await;
}
