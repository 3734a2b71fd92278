//! The functions of the API server simulator's handle: faults, broken watches, permissions, groups, the log.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says where"
)]

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use scupper_simulator::api::{Action, ApiServer, Fault, Forbidden, Kind, Lifecycle, Options, objects};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

async fn server(options: Options) -> (ApiServer, Client) {
    let server = ApiServer::start(options).await.unwrap();
    server.store().apply(objects::node("node-1").build()).unwrap();
    let client = Client::try_from(server.client_config()).unwrap();
    (server, client)
}

async fn ask(client: &Client, method: &str, path: &str, body: Value) -> Result<(u16, Value), kube::Error> {
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/merge-patch+json");
    let reply = client.send(request.body(Body::from(bytes)).unwrap()).await?;
    let code = reply.status().as_u16();
    let bytes = reply.into_body().collect_bytes().await?;
    Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
}

async fn get(client: &Client, path: &str) -> (u16, Value) {
    ask(client, "GET", path, Value::Null).await.unwrap()
}

const NODE: &str = "/api/v1/nodes/node-1";

fn cordon() -> Value {
    json!({"spec": {"unschedulable": true}})
}

fn cordoned(server: &ApiServer) -> bool {
    server.store().get("nodes", "", "node-1").unwrap()["spec"]["unschedulable"] == true
}

#[tokio::test]
async fn a_fault_hits_the_requests_that_it_names() {
    let (server, client) = server(Options::default()).await;
    let body = json!({"kind": "Status", "message": "ordered"});
    server.faults([Fault::new(Action::Status(503, Some(body.clone())))
        .method("GET")
        .path("/api/*/nodes/*")
        .skip(1)
        .count(2)]);
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(get(&client, NODE).await.0);
    }
    assert_eq!(codes, [200, 503, 503, 200]);
    assert_eq!(get(&client, "/api/v1/nodes").await.0, 200);
    server.faults([Fault::new(Action::RetryAfter(429, 3))]);
    let (code, status) = get(&client, NODE).await;
    assert_eq!((code, &status["details"]["retryAfterSeconds"]), (429, &json!(3)));
    server.clear_faults();
    assert_eq!(get(&client, NODE).await.0, 200);
}

#[tokio::test]
async fn a_dropped_connection_has_its_effect_or_has_not() {
    let (server, client) = server(Options::default()).await;
    server.faults([Fault::new(Action::DropBefore).method("PATCH").count(1)]);
    ask(&client, "PATCH", NODE, cordon()).await.unwrap_err();
    assert!(!cordoned(&server));
    server.faults([Fault::new(Action::DropAfter).method("PATCH").count(1)]);
    ask(&client, "PATCH", NODE, cordon()).await.unwrap_err();
    assert!(cordoned(&server));
}

#[tokio::test]
async fn a_request_hangs_or_comes_late() {
    let (server, client) = server(Options::default()).await;
    server.faults([
        Fault::new(Action::Hang).verb("patch").count(1),
        Fault::new(Action::Delay(Duration::from_millis(300)))
            .verb("get")
            .count(1),
    ]);
    timeout(Duration::from_millis(300), ask(&client, "PATCH", NODE, cordon()))
        .await
        .unwrap_err();
    assert!(!cordoned(&server));
    let begun = Instant::now();
    assert_eq!(get(&client, NODE).await.0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_share_of_the_requests_is_hit_the_same_by_the_same_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let (server, client) = server(Options::default()).await;
        server.seed(7);
        server.faults([Fault::new(Action::Status(500, None)).probability(0.5)]);
        let mut codes = Vec::new();
        for _ in 0..40 {
            codes.push(get(&client, NODE).await.0);
        }
        runs.push(codes);
    }
    assert_eq!(runs[0], runs[1]);
    let hit = runs[0].iter().filter(|it| **it == 500).count();
    assert!((5..35).contains(&hit), "{hit} of 40");
}

#[tokio::test]
async fn server_side_apply_creates_or_merges() {
    let (server, client) = server(Options::default()).await;
    let map = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {value: "1"}});
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client, "default");
    for value in ["x", "y"] {
        let params = kube::api::PatchParams::apply("test");
        maps.patch("a", &params, &kube::api::Patch::Apply(map(value)))
            .await
            .unwrap();
    }
    let stored = server.store().get("configmaps", "default", "a").unwrap();
    assert_eq!(stored["data"], json!({"x": "1", "y": "1"}));
}

#[tokio::test]
async fn rights_are_taken_by_user_verb_and_resource() {
    let (server, client) = server(Options::default()).await;
    server.set_forbidden(Forbidden {
        verb: "patch".to_owned(),
        resource: "nodes".to_owned(),
        ..Forbidden::default()
    });
    let (code, status) = ask(&client, "PATCH", NODE, cordon()).await.unwrap();
    assert_eq!(code, 403);
    let message = "nodes \"node-1\" is forbidden: User \"admin\" cannot patch resource \"nodes\" in API group \"\" at the \
                   cluster scope";
    assert_eq!(status["message"], message);
    assert_eq!(get(&client, NODE).await.0, 200);
    server.clear_forbidden();
    assert_eq!(ask(&client, "PATCH", NODE, cordon()).await.unwrap().0, 200);
}

#[tokio::test]
async fn a_kubelet_sees_only_the_events_of_its_node() {
    let (server, _) = server(Options::default()).await;
    let mut config = server.client_config();
    config.auth_info.token = Some("system:node:node-1".to_owned().into());
    let kubelet = Client::try_from(config).unwrap();
    let events = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents";
    let transitions = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions";
    for (path, code) in [
        (events.to_owned(), 403),
        (format!("{events}?fieldSelector=spec.bindingNode%3Dnode-2"), 403),
        (format!("{events}?fieldSelector=spec.bindingNode%3Dnode-1"), 200),
        (transitions.to_owned(), 403),
        (format!("{transitions}?fieldSelector=spec.nodeName%3Dnode-1"), 200),
        (format!("{transitions}/any"), 404),
    ] {
        assert_eq!(get(&kubelet, &path).await.0, code, "{path}");
    }
}

#[tokio::test]
async fn the_lifecycle_group_may_be_absent_or_have_another_name() {
    let path = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents";
    let (absent, client) = server(Options {
        lifecycle: Lifecycle::NotServed,
        ..Options::default()
    })
    .await;
    assert_eq!(get(&client, path).await.0, 404);
    assert_eq!(get(&client, "/apis/lifecycle.k8s.io/v1alpha1").await.0, 404);
    drop(absent);
    let group = "lifecycle.example.com".to_owned();
    let options = Options {
        lifecycle: Lifecycle::Crd,
        lifecycle_group: group,
        ..Options::default()
    };
    let (_other, client) = server(options).await;
    assert_eq!(get(&client, path).await.0, 404);
    assert_eq!(
        get(&client, "/apis/lifecycle.example.com/v1alpha1/lifecycleevents")
            .await
            .0,
        200
    );
    let (_, list) = get(&client, "/apis/lifecycle.example.com/v1alpha1").await;
    let names: Vec<&str> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "lifecycletransitions",
            "lifecycleevents",
            "lifecycleevents/status"
        ]
    );
}

#[tokio::test]
async fn an_older_server_refuses_initial_events() {
    let (_server, client) = server(Options {
        watch_list: false,
        ..Options::default()
    })
    .await;
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let (code, status) = get(&client, &format!("/api/v1/pods?{query}")).await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("sendInitialEvents"))
    );
}

#[tokio::test]
async fn kinds_of_ones_own_are_served() {
    let kind = Kind::custom("example.com", "v1", "things", "Thing")
        .namespaced()
        .selectable("spec.nodeName");
    let (server, client) = server(Options {
        kinds: vec![kind],
        ..Options::default()
    })
    .await;
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"namespace": "default", "name": "a"}, "spec": {"nodeName": "node-1"}});
    server.store().apply(thing).unwrap();
    let (_, list) = get(
        &client,
        "/apis/example.com/v1/things?fieldSelector=spec.nodeName%3Dnode-1",
    )
    .await;
    assert_eq!(list["items"][0]["kind"], "Thing");
}

#[tokio::test]
async fn requests_are_counted_from_a_mark() {
    let (server, client) = server(Options::default()).await;
    get(&client, NODE).await;
    let mark = server.mark();
    get(&client, "/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion=0").await;
    get(&client, "/api/v1/namespaces/default/pods/nope").await;
    let seen: Vec<(String, String, Option<u16>)> = server
        .requests_since(mark)
        .into_iter()
        .map(|it| (it.verb, it.resource, it.status))
        .collect();
    let wanted =
        [("watch", 200), ("get", 404)].map(|(verb, code)| (verb.to_owned(), "pods".to_owned(), Some(code)));
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn an_owner_gets_another_pod_elsewhere() {
    let (server, _) = server(Options::default()).await;
    let store = server.store();
    store
        .apply(objects::replica_set("default", "web", 1).build())
        .unwrap();
    let first = pod_on(&server, "node-1").await;
    store.apply(objects::node("node-2").build()).unwrap();
    store
        .edit("nodes", "", "node-1", |node| {
            node["spec"]["unschedulable"] = json!(true)
        })
        .unwrap();
    store.delete_gracefully("pods", "default", &first).unwrap();
    assert_ne!(pod_on(&server, "node-2").await, first);
}

/// The name of the one pod that runs on a node, once it does.
async fn pod_on(server: &ApiServer, node: &str) -> String {
    let found = timeout(Duration::from_secs(60), async {
        loop {
            let pods = server.store().list("pods");
            let runs = |it: &&Value| it["spec"]["nodeName"] == node && it["status"]["phase"] == "Running";
            if let Some(pod) = pods.iter().find(runs) {
                return pod["metadata"]["name"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    found.await.unwrap()
}

#[tokio::test]
async fn a_mirror_pod_comes_back() {
    let (server, _) = server(Options::default()).await;
    let pod = objects::pod("kube-system", "etcd", "node-1").mirror().build();
    let before = server.store().apply(pod).unwrap()["metadata"]["uid"].clone();
    tokio::time::pause();
    server
        .store()
        .delete_gracefully("pods", "kube-system", "etcd")
        .unwrap();
    let back = timeout(Duration::from_secs(200), async {
        while server
            .store()
            .get("pods", "kube-system", "etcd")
            .is_none_or(|it| it["metadata"]["uid"] == before)
        {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let begun = Instant::now();
    back.await.unwrap();
    assert!(
        begun.elapsed() >= Duration::from_secs(80),
        "{:?}",
        begun.elapsed()
    );
}

/// A client that reads an unexpected end of a stream warns about it.
#[tokio::test]
async fn a_server_that_stops_ends_its_watches_without_an_error() {
    let (server, client) = server(Options::default()).await;
    let watch = Request::get("/api/v1/nodes?watch=1&resourceVersion=0");
    let watch = client.send(watch.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(watch.status(), 200);
    drop(server);
    let read = timeout(Duration::from_secs(300), watch.into_body().collect_bytes()).await;
    let read = read.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&read).contains("node-1"), "{read:?}");
}
