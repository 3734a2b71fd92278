//! `GET …?watch=1`.

use std::time::Duration;

use serde_json::{Value, json};

use super::Case;
use super::subject::Subject;
use crate::cases;

pub(crate) fn cases() -> Vec<Case> {
    use super::watches;
    cases! {
        Nothing: watches::initial_events_and_their_end;
        Nothing: watches::initial_events_without_bookmarks;
        Nothing: watches::initial_events_need_a_match;
        Nothing: watches::from_zero_with_bookmarks;
        Nothing: watches::from_nothing_without_bookmarks;
        Nothing: watches::from_a_list;
        Lifecycle: watches::from_too_old_a_version;
        Nothing: watches::from_a_version_ahead;
        Nothing: watches::the_end_of_the_timeout;
        Nothing: watches::a_bookmark_before_the_end;
        Nothing: watches::a_selector_that_no_longer_matches;
        Nothing: watches::an_evicted_pod;
        Nothing: watches::a_pod_evicted_without_grace;
    }
}

const MARKS: &str = "allowWatchBookmarks=true";

fn ends_initial(event: &Value) -> bool {
    event["type"] == "BOOKMARK"
        && event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

async fn initial_events_and_their_end(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    for version in ["", "&resourceVersion=0"] {
        let query = format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&{MARKS}{version}");
        let mut watch = on.watch(&query).await;
        let mut names = watch.names(2).await;
        names.sort();
        assert_eq!(names, ["ADDED a", "ADDED b"]);
        let mark = watch.next().await.unwrap();
        assert!(ends_initial(&mark), "{mark}");
        assert_eq!(mark["object"]["spec"], json!({"containers": null}));
        assert_eq!(
            (&mark["object"]["kind"], &mark["object"]["apiVersion"]),
            (&json!("Pod"), &json!("v1"))
        );
        on.merge(
            &on.pod_path("a"),
            json!({"metadata": {"annotations": {"x": version}}}),
        )
        .await
        .is(200);
        assert_eq!(watch.names(1).await, ["MODIFIED a"]);
    }
}

async fn initial_events_without_bookmarks(on: Subject) {
    on.runs("a").await;
    let mut watch = on
        .watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        .await;
    assert_eq!(watch.names(1).await, ["ADDED a"]);
    watch.is_silent_for(Duration::from_millis(700)).await;
}

async fn initial_events_need_a_match(on: Subject) {
    let reply = on
        .get(&format!("{}?watch=1&sendInitialEvents=true", on.pods()))
        .await
        .is(422);
    assert_eq!(reply.at("/reason"), "Invalid");
    assert_eq!(reply.at("/details/causes/0/reason"), "FieldValueForbidden");
    assert_eq!(reply.at("/details/causes/0/field"), "resourceVersionMatch");
}

async fn from_zero_with_bookmarks(on: Subject) {
    on.runs("a").await;
    for version in ["resourceVersion=0&", ""] {
        let mut watch = on.watch(&format!("{version}{MARKS}")).await;
        assert_eq!(watch.names(1).await, ["ADDED a"]);
        let mark = watch.next().await.unwrap();
        assert!(ends_initial(&mark), "{mark}");
    }
}

async fn from_nothing_without_bookmarks(on: Subject) {
    on.runs("a").await;
    for version in ["resourceVersion=0", ""] {
        let mut watch = on.watch(version).await;
        assert_eq!(watch.names(1).await, ["ADDED a"]);
        watch.is_silent_for(Duration::from_millis(500)).await;
    }
}

async fn from_a_list(on: Subject) {
    on.runs("a").await;
    let version = on
        .get(&on.pods())
        .await
        .at("/metadata/resourceVersion")
        .as_str()
        .unwrap()
        .to_owned();
    on.merge(
        &on.pod_path("a"),
        json!({"metadata": {"annotations": {"x": "1"}}}),
    )
    .await
    .is(200);
    let mut watch = on.watch(&format!("resourceVersion={version}")).await;
    assert_eq!(watch.names(1).await, ["MODIFIED a"]);
    on.runs("b").await;
    assert_eq!(watch.names(1).await, ["ADDED b"]);
}

async fn from_too_old_a_version(on: Subject) {
    // A real server's history of pods reaches back to its first version; that of later kinds does not.
    let mut watch = on
        .watch_of(
            "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents",
            "resourceVersion=1",
        )
        .await;
    let events = watch.rest().await;
    assert_eq!(events.len(), 1);
    let status = &events[0]["object"];
    assert_eq!(events[0]["type"], "ERROR");
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(410), &json!("Expired"))
    );
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("too old resource version: 1 ("), "{message}");
}

async fn from_a_version_ahead(on: Subject) {
    on.runs("a").await;
    let mut watch = on.watch("resourceVersion=999999999&timeoutSeconds=2").await;
    assert_eq!(watch.rest().await, Vec::<Value>::new());
}

async fn the_end_of_the_timeout(on: Subject) {
    on.runs("a").await;
    let begun = tokio::time::Instant::now();
    let mut watch = on.watch("resourceVersion=0&timeoutSeconds=2").await;
    assert_eq!(watch.rest().await.len(), 1);
    let took = begun.elapsed();
    assert!(
        took > Duration::from_millis(1500) && took < Duration::from_secs(6),
        "{took:?}"
    );
}

async fn a_bookmark_before_the_end(on: Subject) {
    on.runs("a").await;
    let version = on
        .get(&on.pods())
        .await
        .at("/metadata/resourceVersion")
        .as_str()
        .unwrap()
        .to_owned();
    let mut watch = on
        .watch(&format!("resourceVersion={version}&timeoutSeconds=6&{MARKS}"))
        .await;
    let events = watch.rest().await;
    assert!(!events.is_empty(), "no bookmark");
    for event in events {
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        assert_eq!(event["object"]["spec"], json!({"containers": null}));
        assert_eq!(event["object"]["status"], json!({}));
    }
}

async fn a_selector_that_no_longer_matches(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    let mut watch = on.watch("resourceVersion=0&labelSelector=app%3Dit").await;
    watch.names(2).await;
    on.merge(
        &on.pod_path("a"),
        json!({"metadata": {"labels": {"app": "other"}}}),
    )
    .await
    .is(200);
    assert_eq!(watch.names(1).await, ["DELETED a"]);
    on.merge(&on.pod_path("a"), json!({"metadata": {"labels": {"app": "it"}}}))
        .await
        .is(200);
    assert_eq!(watch.names(1).await, ["ADDED a"]);
}

/// The events of a deleted pod.
fn going(event: &Value) -> Value {
    let pod = &event["object"];
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let status = |kind: &str| {
        conditions
            .iter()
            .find(|it| it["type"] == kind)
            .map(|it| it["status"].clone())
    };
    json!([
        event["type"],
        status("DisruptionTarget").unwrap_or_default(),
        pod["metadata"]["deletionTimestamp"].is_string(),
        pod["metadata"]["deletionGracePeriodSeconds"],
        pod["metadata"]["generation"],
        pod["status"]["phase"],
        status("Ready").unwrap_or_default()
    ])
}

async fn an_evicted_pod(on: Subject) {
    for (exit, phase) in [("0", "Succeeded"), ("3", "Failed")] {
        let name = format!("p{exit}");
        let pod = on
            .runs_with(&name, json!({"testbed/takes": "1", "testbed/exit-code": exit}))
            .await;
        let version = pod["metadata"]["resourceVersion"].as_str().unwrap();
        let mut watch = on.watch(&format!("resourceVersion={version}")).await;
        on.evict(&name, json!({})).await.is(201);
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(going(&watch.next().await.unwrap()));
        }
        let wanted = [
            json!(["MODIFIED", "True", false, null, 1, "Running", "True"]),
            json!(["MODIFIED", "True", true, 30, 2, "Running", "True"]),
            json!(["MODIFIED", "True", true, 30, 2, phase, "False"]),
            json!(["MODIFIED", "True", true, 0, 2, phase, "False"]),
            json!(["DELETED", "True", true, 0, 2, phase, "False"]),
        ];
        assert_eq!(seen, wanted);
    }
}

async fn a_pod_evicted_without_grace(on: Subject) {
    let pod = on.runs("a").await;
    let version = pod["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = on.watch(&format!("resourceVersion={version}")).await;
    on.evict("a", json!({"gracePeriodSeconds": 0})).await.is(201);
    assert_eq!(watch.names(3).await, ["MODIFIED a", "MODIFIED a", "DELETED a"]);
}
