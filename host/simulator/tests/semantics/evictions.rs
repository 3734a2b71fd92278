//! `POST …/pods/NAME/eviction`.

use std::time::Duration;

use serde_json::{Value, json};

use super::Case;
use super::subject::{Subject, eviction, pod, ready};
use crate::cases;

pub(crate) fn cases() -> Vec<Case> {
    use super::evictions;
    cases! {
        Nothing: evictions::accepted;
        Nothing: evictions::budget_exhausted;
        Nothing: evictions::budget_of_percentages_over_bare_pods;
        Nothing: evictions::budget_of_percentages_over_a_replica_set;
        Nothing: evictions::two_budgets;
        Nothing: evictions::wrong_uid_of_a_running_pod;
        Nothing: evictions::wrong_uid_of_a_terminating_pod;
        Nothing: evictions::wrong_uid_of_a_finished_pod;
        Nothing: evictions::wrong_uid_under_an_exhausted_budget;
        Nothing: evictions::wrong_uid_spends_the_budget;
        Nothing: evictions::old_resource_version;
        Nothing: evictions::terminating_pod;
        Nothing: evictions::terminating_pod_with_another_grace;
        Nothing: evictions::finished_pod;
        Nothing: evictions::pending_pod;
        Nothing: evictions::grace_zero;
        Nothing: evictions::grace_longer_than_the_pods_own;
        Nothing: evictions::unready_pod_if_healthy_budget;
        Nothing: evictions::unready_pod_of_a_healthy_budget;
        Nothing: evictions::unready_pod_always_allow;
        Nothing: evictions::pod_gone;
        Nothing: evictions::namespace_gone;
        Nothing: evictions::namespace_terminating;
        Nothing: evictions::no_right;
        Nothing: evictions::name_in_the_body_is_another;
        Nothing: evictions::dry_run;
        Nothing: evictions::body_of_v1beta1;
        Nothing: evictions::body_without_kind;
        Alone: evictions::stale_budget;
        Alone: evictions::server_paused;
    }
}

const FULL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

fn full(cause: &str) -> Value {
    json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]})
}

fn uid_conflict(name: &str, pod: &Value) -> String {
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    format!(
        "Operation cannot be fulfilled on Pod \"{name}\": the UID in the precondition (other) does not match the UID in \
         record ({uid}). The object might have been deleted and then recreated"
    )
}

fn other_uid() -> Value {
    json!({"preconditions": {"uid": "other"}})
}

async fn accepted(on: Subject) {
    let pod = on.runs_with("a", json!({"testbed/takes": "5"})).await;
    let reply = on
        .evict("a", json!({"preconditions": {"uid": pod["metadata"]["uid"]}}))
        .await
        .is(201);
    assert_eq!(
        (reply.at("/kind"), reply.at("/status")),
        (json!("Status"), json!("Success"))
    );
    assert_eq!(reply.at("/reason"), Value::Null);
    assert_eq!(reply.at("/code"), 201);
    let pod = on.the_pod("a").await;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let disruption = conditions
        .iter()
        .find(|it| it["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(disruption["status"], "True");
    assert_eq!(disruption["reason"], "EvictionByEvictionAPI");
    assert_eq!(disruption["message"], "Eviction API: evicting");
}

async fn budget_exhausted(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    on.budget("blk", json!({"minAvailable": 2}), 0, 2).await;
    let reply = on.evict("a", json!({})).await;
    let cause = "The disruption budget blk needs 2 healthy pods and has 2 currently";
    reply.is_refusal(429, json!("TooManyRequests"), FULL, full(cause));
    assert_eq!(reply.retry_after, None);
}

async fn budget_of_percentages_over_bare_pods(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    on.budget("pct", json!({"minAvailable": "50%"}), 0, 2).await;
    let reply = on.evict("a", json!({})).await;
    let cause = "The disruption budget pct does not allow evicting pods currently";
    reply.is_refusal(429, json!("TooManyRequests"), FULL, full(cause));
}

async fn budget_of_percentages_over_a_replica_set(on: Subject) {
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "it"}},
            "template": {"metadata": {"labels": {"app": "it"}},
                "spec": {"nodeName": "node-0", "containers": [{"name": "main", "image": "none"}]}}}});
    on.post(
        &format!("/apis/apps/v1/namespaces/{}/replicasets", on.namespace),
        set,
    )
    .await
    .is(201);
    on.budget("pct", json!({"maxUnavailable": "40%"}), 2, 3).await;
    let budget = on.get(&on.budget_path("pct")).await;
    assert_eq!(budget.at("/status/expectedPods"), 3);
    assert_eq!(budget.at("/status/desiredHealthy"), 1);
}

async fn two_budgets(on: Subject) {
    on.runs("a").await;
    on.budget("one", json!({"minAvailable": 0}), 1, 1).await;
    on.budget("two", json!({"minAvailable": 0}), 1, 1).await;
    let message =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    on.evict("a", json!({}))
        .await
        .is_refusal(500, Value::Null, message, Value::Null);
}

async fn wrong_uid_of_a_running_pod(on: Subject) {
    let pod = on.runs("a").await;
    let reply = on.evict("a", other_uid()).await;
    reply.is_refusal(
        409,
        json!("Conflict"),
        &uid_conflict("a", &pod),
        json!({"name": "a", "kind": "Pod"}),
    );
    assert!(reply.took < Duration::from_secs(3), "{:?}", reply.took);
}

async fn wrong_uid_of_a_terminating_pod(on: Subject) {
    let pod = on.runs_with("a", json!({"testbed/takes": "25"})).await;
    on.evict("a", json!({})).await.is(201);
    let reply = on.evict("a", other_uid()).await;
    reply.is_refusal(
        409,
        json!("Conflict"),
        &uid_conflict("a", &pod),
        json!({"name": "a", "kind": "Pod"}),
    );
    assert!(reply.took > Duration::from_secs(8), "{:?}", reply.took);
}

async fn wrong_uid_of_a_finished_pod(on: Subject) {
    let pod = on.runs_with("a", json!({"testbed/completes": "0.5"})).await;
    on.pod_is("a", |pod| pod["status"]["phase"] == "Succeeded").await;
    let reply = on.evict("a", other_uid()).await;
    reply.is_refusal(
        409,
        json!("Conflict"),
        &uid_conflict("a", &pod),
        json!({"name": "a", "kind": "Pod"}),
    );
    assert!(reply.took > Duration::from_secs(8), "{:?}", reply.took);
}

async fn wrong_uid_under_an_exhausted_budget(on: Subject) {
    on.runs("a").await;
    on.budget("blk", json!({"minAvailable": 1}), 0, 1).await;
    on.evict("a", other_uid()).await.is(429);
}

async fn wrong_uid_spends_the_budget(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    on.budget("one", json!({"minAvailable": 1}), 1, 2).await;
    on.evict("a", other_uid()).await.is(409);
    let budget = on
        .becomes(&on.budget_path("one"), |it| {
            it.at("/status/disruptionsAllowed") == 0
        })
        .await;
    assert!(
        budget.at("/status/disruptedPods/a").is_string(),
        "{}",
        budget.body
    );
    // It stays so once the controller has checked.
    on.budget_is("one", 0, 1).await;
    on.evict("b", json!({})).await.is(429);
    assert_eq!(
        on.the_pod("a").await["metadata"]["deletionTimestamp"],
        Value::Null
    );
}

async fn old_resource_version(on: Subject) {
    let pod = on.runs("a").await;
    let reply = on
        .evict("a", json!({"preconditions": {"resourceVersion": "1"}}))
        .await;
    let version = pod["metadata"]["resourceVersion"].as_str().unwrap();
    let message = format!(
        "Operation cannot be fulfilled on Pod \"a\": the ResourceVersion in the precondition (1) does not match the \
         ResourceVersion in record ({version}). The object might have been modified"
    );
    reply.is_refusal(
        409,
        json!("Conflict"),
        &message,
        json!({"name": "a", "kind": "Pod"}),
    );
}

async fn terminating_pod(on: Subject) {
    on.runs_with("a", json!({"testbed/takes": "25"})).await;
    on.evict("a", json!({})).await.is(201);
    let before = on.the_pod("a").await;
    on.budget_made("blk", json!({"minAvailable": 5})).await;
    on.evict("a", json!({})).await.is(201);
    assert_eq!(on.the_pod("a").await["metadata"], before["metadata"]);
}

async fn terminating_pod_with_another_grace(on: Subject) {
    on.runs_with("a", json!({"testbed/takes": "25"})).await;
    on.evict("a", json!({})).await.is(201);
    let before = on.the_pod("a").await;
    on.evict("a", json!({"gracePeriodSeconds": 100})).await.is(201);
    assert_eq!(on.the_pod("a").await["metadata"], before["metadata"]);
    on.evict("a", json!({"gracePeriodSeconds": 15})).await.is(201);
    let after = on.the_pod("a").await;
    assert_eq!(after["metadata"]["deletionGracePeriodSeconds"], 15);
    let stamp = |pod: &Value| {
        pod["metadata"]["deletionTimestamp"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    assert_eq!((stamp(&before) - stamp(&after)).get_seconds(), 15);
}

async fn finished_pod(on: Subject) {
    on.runs_with("a", json!({"testbed/completes": "0.5"})).await;
    on.pod_is("a", |pod| pod["status"]["phase"] == "Succeeded").await;
    on.budget_made("blk", json!({"minAvailable": 5})).await;
    on.evict("a", json!({})).await.is(201);
    on.get(&on.pod_path("a")).await.is(404);
}

async fn pending_pod(on: Subject) {
    on.made(pod("a", json!({"testbed/starts": "false"}))).await;
    on.budget("blk", json!({"minAvailable": 5}), 0, 0).await;
    on.evict("a", json!({})).await.is(201);
    on.pod_goes("a").await;
}

async fn grace_zero(on: Subject) {
    on.runs_with("a", json!({"testbed/takes": "25"})).await;
    on.evict("a", json!({"gracePeriodSeconds": 0})).await.is(201);
    on.get(&on.pod_path("a")).await.is(404);
}

async fn grace_longer_than_the_pods_own(on: Subject) {
    let mut object = pod("a", json!({"testbed/takes": "9"}));
    object["spec"]["terminationGracePeriodSeconds"] = json!(10);
    on.made(object).await;
    on.pod_is("a", |pod| ready(pod) == "True").await;
    on.evict("a", json!({"gracePeriodSeconds": 100})).await.is(201);
    assert_eq!(
        on.the_pod("a").await["metadata"]["deletionGracePeriodSeconds"],
        100
    );
}

async fn unready_pod_if_healthy_budget(on: Subject) {
    for name in ["a", "b"] {
        on.made(pod(name, json!({"testbed/ready": "false"}))).await;
        on.pod_is(name, |pod| pod["status"]["phase"] == "Running").await;
    }
    on.budget("blk", json!({"minAvailable": 2}), 0, 0).await;
    let cause = "The disruption budget blk needs 2 healthy pods and has 0 currently";
    on.evict("a", json!({}))
        .await
        .is_refusal(429, json!("TooManyRequests"), FULL, full(cause));
}

async fn unready_pod_of_a_healthy_budget(on: Subject) {
    on.runs("a").await;
    on.made(pod("b", json!({"testbed/ready": "false", "testbed/takes": "5"})))
        .await;
    on.pod_is("b", |pod| pod["status"]["phase"] == "Running").await;
    on.budget("blk", json!({"minAvailable": 1}), 0, 1).await;
    on.evict("b", json!({})).await.is(201);
    on.evict("a", json!({})).await.is(429);
}

async fn unready_pod_always_allow(on: Subject) {
    on.made(pod("a", json!({"testbed/ready": "false"}))).await;
    on.pod_is("a", |pod| pod["status"]["phase"] == "Running").await;
    on.budget(
        "blk",
        json!({"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        0,
        0,
    )
    .await;
    on.evict("a", json!({})).await.is(201);
}

async fn pod_gone(on: Subject) {
    let reply = on.evict("nope", json!({})).await;
    reply.is_refusal(
        404,
        json!("NotFound"),
        "pods \"nope\" not found",
        json!({"name": "nope", "kind": "pods"}),
    );
}

async fn namespace_gone(on: Subject) {
    let reply = on
        .post(
            "/api/v1/namespaces/nope/pods/a/eviction",
            eviction("a", json!({})),
        )
        .await;
    let details = json!({"name": "nope", "kind": "namespaces"});
    reply.is_refusal(404, json!("NotFound"), "namespaces \"nope\" not found", details);
}

async fn namespace_terminating(on: Subject) {
    let mut held = pod("a", json!({"testbed/takes": "2"}));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    on.made(held).await;
    on.pod_is("a", |pod| ready(pod) == "True").await;
    let namespace = on.namespace.clone();
    on.delete(&format!("/api/v1/namespaces/{namespace}"), Value::Null)
        .await
        .is(200);
    on.becomes(&format!("/api/v1/namespaces/{namespace}"), |it| {
        it.at("/status/phase") == "Terminating"
    })
    .await;
    let message = format!(
        "pods \"a\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
    );
    let details = json!({"name": "a", "kind": "pods", "causes": [{"reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"}]});
    on.evict("a", json!({}))
        .await
        .is_refusal(403, json!("Forbidden"), &message, details);
    on.merge(&on.pod_path("a"), json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
    on.becomes(&format!("/api/v1/namespaces/{namespace}"), |it| it.code == 404)
        .await;
}

async fn no_right(on: Subject) {
    let body = eviction("p", json!({}));
    let path = "/api/v1/namespaces/default/pods/p/eviction";
    let reply = on
        .ask_as(&on.nobody, "POST", path, "application/json", body)
        .await;
    let message = "pods \"p\" is forbidden: User \"system:serviceaccount:default:nobody\" cannot create resource \
                   \"pods/eviction\" in API group \"\" in the namespace \"default\"";
    reply.is_refusal(
        403,
        json!("Forbidden"),
        message,
        json!({"name": "p", "kind": "pods"}),
    );
}

async fn name_in_the_body_is_another(on: Subject) {
    on.runs("a").await;
    let reply = on
        .post(
            &format!("{}/eviction", on.pod_path("a")),
            eviction("b", json!({})),
        )
        .await;
    let message = "name in URL does not match name in Eviction object";
    reply.is_refusal(400, json!("BadRequest"), message, Value::Null);
}

async fn dry_run(on: Subject) {
    on.runs("a").await;
    on.runs("b").await;
    on.budget("one", json!({"minAvailable": 1}), 1, 2).await;
    let dry = json!({"dryRun": ["All"]});
    on.evict("a", dry.clone()).await.is(201);
    let path = format!("{}/eviction?dryRun=All", on.pod_path("a"));
    on.post(&path, eviction("a", json!({}))).await.is(201);
    on.evict("a", json!({"dryRun": ["All"], "preconditions": {"uid": "other"}}))
        .await
        .is(409);
    let budget = on.get(&on.budget_path("one")).await;
    assert_eq!(
        (
            budget.at("/status/disruptionsAllowed"),
            budget.at("/status/disruptedPods")
        ),
        (json!(1), Value::Null)
    );
    let pod = on.the_pod("a").await;
    assert_eq!(pod["metadata"]["deletionTimestamp"], Value::Null);
    assert!(
        !pod["status"]["conditions"]
            .to_string()
            .contains("DisruptionTarget")
    );
    on.budget_made("two", json!({"minAvailable": 1})).await;
    on.evict("a", dry.clone()).await.is(500);
    on.delete(&on.budget_path("one"), Value::Null).await.is(200);
    on.merge(&on.budget_path("two"), json!({"spec": {"minAvailable": 2}}))
        .await
        .is(200);
    on.becomes(&on.budget_path("two"), |it| {
        it.at("/status/observedGeneration") == 2
    })
    .await;
    on.evict("a", dry).await.is(429);
}

async fn body_of_v1beta1(on: Subject) {
    on.runs("a").await;
    let mut body = eviction("a", json!({}));
    body["apiVersion"] = json!("policy/v1beta1");
    on.post(&format!("{}/eviction", on.pod_path("a")), body)
        .await
        .is(201);
}

async fn body_without_kind(on: Subject) {
    on.runs("a").await;
    let body = json!({"metadata": {"name": "a"}});
    on.post(&format!("{}/eviction", on.pod_path("a")), body)
        .await
        .is(201);
}

async fn stale_budget(on: Subject) {
    on.runs("a").await;
    on.control.pause_controllers();
    on.budget_made("blk", json!({"minAvailable": 0})).await;
    let reply = on.evict("a", json!({})).await;
    on.control.resume_controllers();
    let cause = "The disruption budget blk is still being processed by the server.";
    let details =
        json!({"causes": [{"reason": "DisruptionBudget", "message": cause}], "retryAfterSeconds": 10});
    reply.is_refusal(429, json!("TooManyRequests"), FULL, details);
    assert_eq!(reply.retry_after.as_deref(), Some("10"));
    on.budget_is("blk", 1, 1).await;
}

async fn server_paused(on: Subject) {
    on.runs("a").await;
    on.control.pause_server();
    let asked = tokio::spawn({
        let on = on.clone();
        async move { on.evict("a", json!({})).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answered = asked.is_finished();
    on.control.resume_server();
    assert!(!answered, "a paused server answered");
    asked.await.unwrap().is(201);
}
