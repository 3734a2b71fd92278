//! LifecycleEvents and LifecycleTransitions.

use std::time::Duration;

use scupper_api::{Change, ClaimStatus, LifecycleTransition, TransitionNodes};
use scupper_cluster::{Cluster, Published, ReadError, WriteError};
use serde_json::{Value, json};

use crate::script::{Feed, Script, cluster, not_found, status};

const TRANSITIONS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions";
const DRAIN: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions/drain";

fn drain() -> LifecycleTransition {
    LifecycleTransition {
        name: "drain".into(),
        start: "drain-started".into(),
        end: "drain-complete".into(),
        nodes: TransitionNodes::AllNodes,
        sla: Some(Duration::from_secs(300)),
        driver: "d".into(),
    }
}

fn object(spec: Value) -> Value {
    json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleTransition",
        "metadata": {"name": "drain"}, "spec": spec,
    })
}

fn stored() -> Value {
    let spec = json!({"start": "drain-started", "end": "drain-complete", "allNodes": true, "sla": "5m0s", "driver": "d"});
    let mut stored = object(spec);
    stored["metadata"]["uid"] = json!("uid-drain");
    stored
}

async fn served(cluster: &Cluster) -> Result<bool, ReadError> {
    let group = cluster.lifecycle_group_as_served(cluster.lifecycle_group());
    Ok(group.await?.is_whole())
}

#[tokio::test]
async fn served_means_both_resources_whatever_the_group_lists() {
    let (cluster, mut server) = cluster();
    let own = [
        "lifecycleevents",
        "lifecycleevents/status",
        "lifecycletransitions",
    ];
    let native = ["evictionrequests", "evictions"];
    for (names, wanted) in [
        (&own[..], true),
        (&native[..], false),
        (&own[..2], false),
        (&own[2..], false),
    ] {
        let (whole, ()) = tokio::join!(served(&cluster), async {
            let resources: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            let call = server.expect("GET", "/apis/lifecycle.k8s.io/v1alpha1").await;
            call.answer(200, json!({"kind": "APIResourceList", "resources": resources}));
        });
        assert_eq!(whole, Ok(wanted), "{names:?}");
    }
    let (whole, ()) = tokio::join!(served(&cluster), async {
        server.next().await.answer(404, json!("404 page not found"));
    });
    assert_eq!(whole, Ok(false));
    let (whole, ()) = tokio::join!(served(&cluster), async {
        server.next().await.fail(503, "", "later")
    });
    assert!(whole.is_err(), "not known is not no");
    let cluster = cluster.with_lifecycle_group("lifecycle.example.com");
    let (whole, ()) = tokio::join!(served(&cluster), async {
        server
            .expect("GET", "/apis/lifecycle.example.com/v1alpha1")
            .await
            .answer(404, json!(""));
    });
    assert_eq!(whole, Ok(false));
    server.finish(cluster).await;
}

async fn publish<F: Future<Output = Script>>(
    wanted: LifecycleTransition,
    script: impl FnOnce(Script) -> F,
) -> Result<Published, WriteError> {
    let (cluster, server) = cluster();
    let (published, server) = tokio::join!(Cluster::publish_transition(&cluster, &wanted), script(server));
    server.finish(cluster).await;
    published
}

#[tokio::test]
async fn publishing_creates_missing_transitions() {
    let published = publish(drain(), async |mut server: Script| {
        server
            .expect("GET", DRAIN)
            .await
            .answer(404, not_found("lifecycletransitions", "drain"));
        let call = server.expect("POST", TRANSITIONS).await;
        let spec = json!({"start": "drain-started", "end": "drain-complete", "allNodes": true, "sla": "5m0s", "driver": "d"});
        assert_eq!(call.body, object(spec));
        call.answer(201, stored());
        server
    });
    assert_eq!(published.await, Ok(Published::Created));
}

#[tokio::test]
async fn publishing_changes_only_fields_that_differ() {
    let published = publish(drain(), async |mut server: Script| {
        server.expect("GET", DRAIN).await.answer(200, stored());
        server
    });
    assert_eq!(published.await, Ok(Published::Unchanged));

    let shorter = LifecycleTransition { sla: None, ..drain() };
    let published = publish(shorter, async |mut server: Script| {
        server.expect("GET", DRAIN).await.answer(200, stored());
        let call = server.expect("PATCH", DRAIN).await;
        let spec = json!({"start": "drain-started", "end": "drain-complete", "sla": null, "driver": "d"});
        assert_eq!(call.body, json!({"spec": spec}));
        call.answer(200, stored());
        server
    });
    assert_eq!(published.await, Ok(Published::Updated));
}

#[tokio::test]
async fn other_nodes_need_a_new_object() {
    let here = LifecycleTransition {
        nodes: TransitionNodes::Node("n1".into()),
        ..drain()
    };
    let published = publish(here, async |mut server: Script| {
        server.expect("GET", DRAIN).await.answer(200, stored());
        let call = server.expect("DELETE", DRAIN).await;
        assert_eq!(call.body["preconditions"], json!({"uid": "uid-drain"}));
        call.answer(200, stored());
        let call = server.expect("POST", TRANSITIONS).await;
        assert_eq!(
            (&call.body["spec"]["nodeName"], &call.body["spec"]["allNodes"]),
            (&json!("n1"), &Value::Null)
        );
        call.answer(201, stored());
        server
    });
    assert_eq!(published.await, Ok(Published::Recreated));
}

#[tokio::test]
async fn a_race_with_other_nodes_is_not_an_error() {
    let published = publish(drain(), async |mut server: Script| {
        server
            .expect("GET", DRAIN)
            .await
            .answer(404, not_found("lifecycletransitions", "drain"));
        server
            .expect("POST", TRANSITIONS)
            .await
            .fail(409, "AlreadyExists", "already exists");
        server.expect("GET", DRAIN).await.answer(200, stored());
        server
    });
    assert_eq!(published.await, Ok(Published::Unchanged));
}

#[tokio::test]
async fn another_drivers_transition_stays_unchanged() {
    let ours = LifecycleTransition {
        driver: "ours".into(),
        ..drain()
    };
    let published = publish(ours, async |mut server: Script| {
        server.expect("GET", DRAIN).await.answer(200, stored());
        server
    });
    assert!(matches!(
        published.await,
        Err(WriteError::Rejected { code: 409, .. })
    ));
}

#[tokio::test]
async fn deleting_a_missing_transition_succeeds() {
    let (cluster, mut server) = cluster();
    for (code, body) in [(200, stored()), (404, not_found("lifecycletransitions", "drain"))] {
        let (deleted, ()) = tokio::join!(cluster.delete_transition("drain"), async {
            server.expect("DELETE", DRAIN).await.answer(code, body);
        });
        assert_eq!(deleted, Ok(()));
    }
    let (deleted, ()) = tokio::join!(cluster.delete_transition("drain"), async {
        server.next().await.answer(
            404,
            status(
                404,
                "NotFound",
                "the server could not find the requested resource",
            ),
        );
    });
    assert!(deleted.is_err(), "the kind itself is not there");
    server.finish(cluster).await;
}

fn event(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "4"},
        "spec": {"transitionName": "drain", "bindingNode": node}, "status": {"claimStatus": "Pending"},
    })
}

#[tokio::test(start_paused = true)]
async fn events_of_the_node_also_where_the_server_cannot_select_them() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.lifecycle_events("n1"));
    let path = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents";
    let call = server.expect("GET", path).await;
    assert_eq!(call.query("fieldSelector"), Some("spec.bindingNode=n1"));
    call.fail(400, "BadRequest", "field label not supported: spec.bindingNode");
    let call = server.expect("GET", path).await;
    assert_eq!(call.query("fieldSelector"), None);
    let lines = call.stream();
    lines.send("ADDED", &event("a", "n1"));
    lines.send("ADDED", &event("b", "n2"));
    lines.end_of_list("5");
    assert!(
        matches!(feed.next().await, Change::Listed(events) if events.len() == 1 && events[0].name == "a")
    );
    lines.send("ADDED", &event("c", "n1"));
    assert!(
        matches!(feed.next().await, Change::Applied(event) if event.name == "c" && event.claim == ClaimStatus::Pending)
    );
    lines.send("DELETED", &event("a", "n1"));
    assert!(matches!(feed.next().await, Change::Deleted(event) if event.name == "a"));
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn transitions_of_the_driver() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.lifecycle_transitions("d"));
    let lines = server.expect("GET", TRANSITIONS).await.stream();
    let mut other = stored();
    other["metadata"]["name"] = json!("other");
    other["spec"]["driver"] = json!("other");
    lines.send("ADDED", &stored());
    lines.send("ADDED", &other);
    lines.end_of_list("5");
    assert_eq!(feed.next().await, Change::Listed(vec![drain()]));
    let mut taken = stored();
    taken["spec"]["driver"] = json!("other");
    lines.send("MODIFIED", &taken);
    assert!(matches!(feed.next().await, Change::Deleted(transition) if transition.name == "drain"));
    feed.stop().await;
    server.finish(cluster).await;
}
