//! `GET` of collections.

use std::time::Duration;

use http::{Request, header};
use kube::client::Body;
use serde_json::{Value, json};

use super::Case;
use super::subject::Subject;
use crate::cases;

pub(crate) fn cases() -> Vec<Case> {
    use super::lists;
    cases! {
        Nothing: lists::from_the_cache;
        Nothing: lists::a_limit_is_ignored_from_the_cache;
        Nothing: lists::pages;
        Nothing: lists::remaining_items_without_selector;
        Nothing: lists::no_such_node;
        Nothing: lists::version_ahead;
        Nothing: lists::unknown_field;
        Nothing: lists::label_selectors;
        Nothing: lists::metadata_only;
        Nothing: lists::one_that_is_not_there;
    }
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn three(on: &Subject) {
    for name in ["a", "b", "c"] {
        on.runs(name).await;
    }
}

const ON_NODE: &str = "fieldSelector=spec.nodeName%3Dnode-0";

async fn from_the_cache(on: Subject) {
    three(&on).await;
    let path = format!("{}?{ON_NODE}&resourceVersion=0", on.pods());
    let list = on
        .becomes(&path, |it| it.code == 200 && names(&it.body).len() == 3)
        .await;
    assert_eq!(
        (list.at("/kind"), list.at("/apiVersion")),
        (json!("PodList"), json!("v1"))
    );
    assert_eq!(
        (list.at("/items/0/kind"), list.at("/items/0/apiVersion")),
        (Value::Null, Value::Null)
    );
    assert!(list.at("/metadata/resourceVersion").is_string());
}

async fn a_limit_is_ignored_from_the_cache(on: Subject) {
    three(&on).await;
    let path = format!("{}?{ON_NODE}&resourceVersion=0&limit=1", on.pods());
    let list = on
        .becomes(&path, |it| it.code == 200 && names(&it.body).len() == 3)
        .await;
    assert_eq!(list.at("/metadata/continue"), Value::Null);
}

async fn pages(on: Subject) {
    three(&on).await;
    let first = on.get(&format!("{}?{ON_NODE}&limit=1", on.pods())).await.is(200);
    assert_eq!(names(&first.body), ["a"]);
    assert_eq!(first.at("/metadata/remainingItemCount"), Value::Null);
    let token = first
        .at("/metadata/continue")
        .as_str()
        .unwrap()
        .replace('=', "%3D");
    on.runs("aa").await;
    // The rest is from the time of the first page.
    let rest = on
        .get(&format!("{}?{ON_NODE}&limit=5&continue={token}", on.pods()))
        .await
        .is(200);
    assert_eq!(names(&rest.body), ["b", "c"]);
    assert_eq!(rest.at("/metadata/continue"), Value::Null);
    assert_eq!(
        rest.at("/metadata/resourceVersion"),
        first.at("/metadata/resourceVersion")
    );
}

async fn remaining_items_without_selector(on: Subject) {
    three(&on).await;
    let first = on.get(&format!("{}?limit=1", on.pods())).await.is(200);
    assert_eq!(first.at("/metadata/remainingItemCount"), 2);
}

async fn no_such_node(on: Subject) {
    on.runs("a").await;
    let list = on
        .get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnope")
        .await
        .is(200);
    assert_eq!(list.at("/items"), json!([]));
}

async fn version_ahead(on: Subject) {
    let reply = on
        .get(&format!("{}?resourceVersion=999999999", on.pods()))
        .await
        .is(504);
    assert!(
        reply.took > Duration::from_millis(2500) && reply.took < Duration::from_secs(8),
        "{:?}",
        reply.took
    );
    assert_eq!(reply.at("/reason"), "Timeout");
    let message = reply.at("/message").as_str().unwrap().to_owned();
    assert!(
        message.starts_with("Timeout: Too large resource version: 999999999, current: "),
        "{message}"
    );
    assert_eq!(reply.at("/details/causes/0/reason"), "ResourceVersionTooLarge");
    assert_eq!(
        reply.at("/details/causes/0/message"),
        "Too large resource version"
    );
    assert_eq!(reply.at("/details/retryAfterSeconds"), 1);
    assert_eq!(reply.retry_after.as_deref(), Some("1"));
}

async fn unknown_field(on: Subject) {
    let reply = on
        .get(&format!("{}?fieldSelector=spec.nope%3D1", on.pods()))
        .await
        .is(400);
    assert_eq!(reply.at("/reason"), "BadRequest");
    let message = reply.at("/message").as_str().unwrap().to_owned();
    assert!(
        message.contains("field label not supported: spec.nope"),
        "{message}"
    );
}

async fn label_selectors(on: Subject) {
    three(&on).await;
    on.merge(
        &on.pod_path("a"),
        json!({"metadata": {"labels": {"tier": "front"}}}),
    )
    .await
    .is(200);
    on.merge(
        &on.pod_path("b"),
        json!({"metadata": {"labels": {"tier": "back"}}}),
    )
    .await
    .is(200);
    for (selector, wanted) in [
        ("tier%3Dfront", vec!["a"]),
        ("tier!%3Dfront", vec!["b", "c"]),
        ("tier", vec!["a", "b"]),
        ("!tier", vec!["c"]),
        ("tier%20in%20(front,back),app%3Dit", vec!["a", "b"]),
        ("tier%20notin%20(front)", vec!["b", "c"]),
    ] {
        let list = on
            .get(&format!("{}?labelSelector={selector}", on.pods()))
            .await
            .is(200);
        assert_eq!(names(&list.body), wanted, "{selector}");
    }
}

async fn metadata_only(on: Subject) {
    on.runs("a").await;
    let request = Request::get(on.pods())
        .header(
            header::ACCEPT,
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        )
        .body(Body::empty())
        .unwrap();
    let bytes = on
        .client
        .send(request)
        .await
        .unwrap()
        .into_body()
        .collect_bytes()
        .await
        .unwrap();
    let list: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    assert_eq!(list["items"][0]["spec"], Value::Null);
}

async fn one_that_is_not_there(on: Subject) {
    let reply = on.get(&on.pod_path("nope")).await;
    reply.is_refusal(
        404,
        json!("NotFound"),
        "pods \"nope\" not found",
        json!({"name": "nope", "kind": "pods"}),
    );
}
