//! A driver's token writes to the driver's node, and to nothing else.

use http::Method;
use serde_json::{Value, json};

use crate::installed::{
    Driver, Installed, POD_PREFIX, ask, ask_as, client, deploy, event, transition, until,
};
use crate::{ALONE, skip};

pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/scupper/leases";

pub(crate) const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// A write, and the server's answer if it is forbidden.
type Write = (Method, String, Value, &'static str);

#[tokio::test]
async fn a_token_of_one_node_is_refused_on_another() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let components = ["own-pods", "pods/delete", "pods/patch"];
    let installed = Installed::with("self-claim", &components, &["--nodes", "2"]).await;
    objects(&installed);
    let own = installed.kubeconfig_on("node-0").await;
    let driver = client(&own).await;
    installed.grants_pod_annotations(&driver, "node-0-1").await;
    for (method, path, body, refusal) in of_node("node-1") {
        let (code, said) = ask(&driver, method.clone(), &path, &body).await;
        let message = said["message"].as_str().unwrap_or_default();
        assert_eq!(code, 403, "{method} {path}: {said}");
        let whose = message.contains("the driver of node node-0 may not");
        assert!(whose && message.contains(refusal), "{method} {path}: {message}");
    }
    bare_token(&installed).await;
    a_driver_on_the_wrong_node(&installed, &own).await;
    for (method, path, body, _) in of_node("node-0") {
        let (code, said) = ask(&driver, method.clone(), &path, &body).await;
        assert!(code.is_success(), "{method} {path}: {said}");
    }
    leases(&installed, &driver).await;
}

/// The API server itself restricts a driver to its own node, and a node to evictions of its own pods.
#[tokio::test]
async fn a_driver_that_evicts_as_its_node_evicts_the_pods_of_no_other() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let restricted = ["--apiserver-arg", "--enable-admission-plugins=NodeRestriction"];
    let options = [&["--nodes", "2"][..], &restricted].concat();
    let installed = Installed::with("self-claim", &["evict-as-node"], &options).await;
    for node in ["node-0", "node-1"] {
        let pods = ["--name", node, "--count", "3", "--namespace", "shop"];
        installed
            .testbed
            .make_pods(&[&["--node", node][..], &pods].concat());
    }
    only_scupper_evicts(&installed, "shop", "node-0-2").await;
    let own = installed.kubeconfig_on("node-0").await;
    let driver = client(&own).await;
    let (own_node, other_node) = (Some("system:node:node-0"), Some("system:node:node-1"));
    for (user, pod, grace, code, words) in [
        (None, "node-0-0", None, 403, "cannot create resource"),
        (own_node, "node-1-0", None, 403, "spec.nodeName set to itself"),
        (other_node, "node-1-0", None, 403, "cannot impersonate"),
        (own_node, "node-0-0", Some(0), 403, "with a grace period of 0"),
        (own_node, "node-0-0", Some(1), 201, ""),
    ] {
        let path = format!("/api/v1/namespaces/shop/pods/{pod}/eviction");
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "shop"},
            "deleteOptions": {"gracePeriodSeconds": grace},
        });
        let (answer, said) = ask_as(&driver, user, Method::POST, &path, &eviction).await;
        let message = said["message"].as_str().unwrap_or_default();
        assert_eq!(answer, code, "{user:?} {pod}: {said}");
        assert!(message.contains(words), "{user:?} {pod}: {message}");
    }
    // No impersonation except for evictions.
    let (code, said) = ask_as(
        &driver,
        Some("system:node:node-0"),
        Method::PATCH,
        "/api/v1/nodes/node-0",
        &json!({"metadata": {"labels": {"tier": "gold"}}}),
    )
    .await;
    assert_eq!(code, 403, "{said}");
    let driver = Driver::start(&installed, "node-0", &own, &["--force"]).await;
    installed.create(&[event("drain-node-0", "drain.slm.k8s.io", "node-0")]);
    until(
        async || installed.condition("node-0", "Drained").await == "True",
        || driver.log(),
    )
    .await;
    assert_eq!(installed.pods("shop", "node-0").await, 0, "{}", driver.log());
    assert_eq!(installed.pods("shop", "node-1").await, 3);
}

/// The example for namespaces whose evictions are left to Scupper, which must not stop Scupper. `pod`: one that others try to
/// evict.
async fn only_scupper_evicts(installed: &Installed, namespace: &str, pod: &str) {
    let example = deploy().join("../examples/neighbours/only-scupper-evicts.yaml");
    let testbed = &installed.testbed;
    testbed.kubectl(&["apply", "-f", example.to_str().unwrap()]);
    let label = "scupper.dev/only-scupper-evicts=true";
    testbed.kubectl(&["label", "namespace", namespace, label]);
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction?dryRun=All");
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace},
    });
    let is_refused = async || {
        let (_, said) = ask(&installed.admin, Method::POST, &path, &eviction).await;
        let message = said["message"].as_str().unwrap_or_default();
        message.contains("only Scupper evicts pods of this namespace")
    };
    until(is_refused, || format!("others may evict {pod}")).await;
}

/// The same for each node.
fn objects(installed: &Installed) {
    let mut objects = Vec::new();
    for node in ["node-0", "node-1"] {
        objects.push(event(&format!("kept-{node}"), "others.example", node));
        let mut reported = reported(node);
        reported["metadata"]["name"] = format!("reported-{node}").into();
        objects.push(reported);
        let of_node = json!({"nodeName": node});
        objects.push(transition(&format!("drain.slm.k8s.io.{node}"), &of_node, "5m"));
        let pods = ["--name", node, "--count", "2"];
        installed
            .testbed
            .make_pods(&[&["--node", node][..], &pods].concat());
    }
    installed.create(&objects);
}

/// All writes of a node's driver.
fn of_node(node: &str) -> Vec<Write> {
    let lifecycle = "/apis/lifecycle.k8s.io/v1alpha1";
    let event = format!("{lifecycle}/lifecycleevents/kept-{node}");
    let own = format!("{lifecycle}/lifecycletransitions/drain.slm.k8s.io.{node}");
    let pods = "/api/v1/namespaces/default/pods";
    let note = json!({"metadata": {"annotations": {"scupper.dev/drain": "{}"}}});
    let granted = json!({"metadata": {"annotations": {format!("{POD_PREFIX}requested"): "1"}}});
    let drained = json!({"type": "Drained", "status": "False", "reason": "Tested", "message": "by a test"});
    let condition = json!({"status": {"conditions": [drained]}});
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": format!("{node}-0"), "namespace": "default"},
    });
    let named = json!({"metadata": {"finalizers": ["lifecycle.k8s.io/claim-protection"]}});
    let claimed = json!({"status": {"claimStatus": "Claimed"}});
    let (patch, post, delete) = (Method::PATCH, Method::POST, Method::DELETE);
    let another = "of another node";
    vec![
        (
            patch.clone(),
            format!("/api/v1/nodes/{node}"),
            note.clone(),
            "write to node node-1",
        ),
        (
            patch.clone(),
            format!("/api/v1/nodes/{node}/status"),
            condition,
            "write to node node-1",
        ),
        (
            post.clone(),
            format!("{pods}/{node}-0/eviction"),
            eviction,
            another,
        ),
        (patch.clone(), format!("{pods}/{node}-1"), granted, another),
        (delete.clone(), format!("{pods}/{node}-1"), Value::Null, another),
        (patch.clone(), event.clone(), named, another),
        (patch.clone(), format!("{event}/status"), claimed, another),
        (delete.clone(), event, Value::Null, another),
        (
            patch.clone(),
            format!("{EVENTS}/reported-{node}"),
            json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}),
            "Events of others",
        ),
        (
            patch,
            own.clone(),
            json!({"spec": {"sla": "7m"}}),
            "lifecycletransition",
        ),
        (delete, own, Value::Null, "lifecycletransition"),
        (
            post.clone(),
            LEASES.to_owned(),
            lease(node),
            "leases of other nodes",
        ),
        (post, EVENTS.to_owned(), reported(node), "Events of others"),
    ]
}

/// A Kubernetes Event as the driver of a node writes it.
pub(crate) fn reported(node: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": "node-", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "Draining", "action": "Drain",
        "reportingController": "scupper.dev/driver", "reportingInstance": node,
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node},
    })
}

pub(crate) fn lease(node: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": node, "namespace": "scupper"},
        "spec": {"holderIdentity": "somebody"},
    })
}

/// Existing ones: the driver created the one of its own node itself.
async fn leases(installed: &Installed, driver: &kube::Client) {
    installed.create(&[lease("node-1")]);
    let renewed = json!({"spec": {"holderIdentity": "somebody else"}});
    for (method, body) in [(Method::PATCH, renewed), (Method::DELETE, Value::Null)] {
        let (code, said) = ask(driver, method.clone(), &format!("{LEASES}/node-1"), &body).await;
        assert_eq!(code, 403, "{method}: {said}");
        let (code, said) = ask(driver, method.clone(), &format!("{LEASES}/node-0"), &body).await;
        assert!(code.is_success(), "{method}: {said}");
    }
}

/// A token that no kubelet requested is accepted nowhere.
async fn bare_token(installed: &Installed) {
    let bare = client(&installed.kubeconfig("scupper", None).await).await;
    for (method, path, body, _) in of_node("node-0") {
        let (code, said) = ask(&bare, method.clone(), &path, &body).await;
        assert_eq!(code, 403, "{method} {path}: {said}");
        let message = said["message"].as_str().unwrap();
        assert!(message.contains("names no node"), "{method} {path}: {message}");
    }
}

async fn a_driver_on_the_wrong_node(installed: &Installed, own: &std::path::Path) {
    let driver = Driver::start(installed, "node-1", own, &["--force"]).await;
    installed.create(&[event("drain-node-1", "drain.slm.k8s.io", "node-1")]);
    let refused = "the driver of node node-0 may not write to lifecycleevent drain-node-1 of another node";
    until(async || driver.log().contains(refused), || driver.log()).await;
    assert_eq!(installed.pods("default", "node-1").await, 2, "{}", driver.log());
    let node = installed.get("/api/v1/nodes/node-1").await;
    assert!(node["spec"]["unschedulable"].is_null(), "{node}");
}
