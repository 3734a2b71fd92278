//! A driver's token writes to the driver's node, and to nothing else.

use http::Method;
use serde_json::{Value, json};

use crate::installed::{Driver, Installed, ask, client, event, transition, until};
use crate::{ALONE, skip};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/scupper/leases";

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// A write, and what the server says when it may not be.
type Write = (Method, String, Value, &'static str);

#[tokio::test]
async fn a_token_of_one_node_is_refused_on_another() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let installed = Installed::up("self-claim", &["--nodes", "2"]).await;
    objects(&installed);
    let own = installed.kubeconfig_on("node-0").await;
    let driver = client(&own).await;
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
    forged(&driver).await;
}

/// The same of each node, and what some policies are granted besides.
fn objects(installed: &Installed) {
    let mut objects = vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "more"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch", "delete"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "more"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "more"},
            "subjects": [{"kind": "ServiceAccount", "name": "scupper", "namespace": "scupper"}],
        }),
    ];
    for node in ["node-0", "node-1"] {
        objects.push(event(&format!("kept-{node}"), "others.example", node));
        let mut told = told(node);
        told["metadata"]["name"] = format!("told-{node}").into();
        objects.push(told);
        let of_node = json!({"nodeName": node});
        objects.push(transition(&format!("drain.slm.k8s.io.{node}"), &of_node, "5m"));
        let pods = ["--name", node, "--count", "2"];
        installed
            .testbed
            .make_pods(&[&["--node", node][..], &pods].concat());
    }
    installed.create(&objects);
}

/// Everything that the driver of a node writes.
fn of_node(node: &str) -> Vec<Write> {
    let lifecycle = "/apis/lifecycle.k8s.io/v1alpha1";
    let event = format!("{lifecycle}/lifecycleevents/kept-{node}");
    let own = format!("{lifecycle}/lifecycletransitions/drain.slm.k8s.io.{node}");
    let pods = "/api/v1/namespaces/default/pods";
    let note = json!({"metadata": {"annotations": {"scupper.dev/drain": "{}"}}});
    let condition = json!({"status": {"phase": "Running"}});
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": format!("{node}-0"), "namespace": "default"},
    });
    let named = json!({"metadata": {"finalizers": ["example.com/kept"]}});
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
        (patch.clone(), format!("{pods}/{node}-1"), note, another),
        (delete.clone(), format!("{pods}/{node}-1"), Value::Null, another),
        (patch.clone(), event.clone(), named, another),
        (patch.clone(), format!("{event}/status"), claimed, another),
        (delete.clone(), event, Value::Null, another),
        (
            patch.clone(),
            format!("{EVENTS}/told-{node}"),
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
        (post, EVENTS.to_owned(), told(node), "Events of others"),
    ]
}

/// A Kubernetes Event as the driver of a node writes it.
fn told(node: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": "node-", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "Draining", "action": "Drain",
        "reportingController": "scupper.dev/driver", "reportingInstance": node,
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node},
    })
}

fn lease(node: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": node, "namespace": "scupper"},
        "spec": {"holderIdentity": "somebody"},
    })
}

/// Those that are there already: the one of its own node it made itself.
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

/// A token that no kubelet asked for counts nowhere.
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

/// What all drivers share, and what of its node is none of its business.
async fn forged(driver: &kube::Client) {
    let transitions = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions";
    let all = json!({"allNodes": true});
    let shared = format!("{transitions}/drain.slm.k8s.io");
    let mut others = transition("others", &all, "5m");
    others["spec"]["driver"] = "others.example".into();
    let worded = json!({"spec": {"end": "drain-started"}});
    let node = "/api/v1/nodes/node-0".to_owned();
    let label = json!({"metadata": {"labels": {"tier": "gold"}}});
    let taint = json!({"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}});
    for (method, path, body) in [
        (Method::POST, transitions.to_owned(), others),
        (Method::PATCH, shared.clone(), worded),
        (Method::DELETE, shared, Value::Null),
        // Another node's name may begin as this one's does.
        (Method::POST, EVENTS.to_owned(), told("node-")),
        (Method::PATCH, node.clone(), label),
        (Method::PATCH, node, taint),
    ] {
        let (code, said) = ask(driver, method.clone(), &path, &body).await;
        assert_eq!(code, 403, "{method} {path}: {said}");
    }
}
