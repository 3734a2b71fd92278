//! The component `surge`: a driver restarts Deployments and changes nothing else of them.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use crate::installed::{Driver, Installed, ask, client, event, until};
use crate::{ALONE, skip};

const COMPONENTS: [&str; 3] = ["facts/namespaces", "facts/owners", "surge"];
pub(crate) const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

#[tokio::test]
async fn a_driver_restarts_a_deployment_and_changes_nothing_else_of_it() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let installed = with_web(&COMPONENTS).await;
    let own = installed.kubeconfig_on("node-0").await;
    let driver = client(&own).await;
    let before = installed.get(WEB).await;
    are_refused(&driver, WEB, forged()).await;
    assert_eq!(installed.get(WEB).await["spec"], before["spec"]);
    with_more_rights(&installed, &driver, "restart deployment ").await;
    needs_a_node(&installed, WEB, &restart()).await;
    let dry = format!("{WEB}?dryRun=All");
    let (code, said) = ask(&driver, Method::PATCH, &dry, &restart()).await;
    assert!(code.is_success(), "{said}");
    is_drained(&installed, &own).await;
}

/// A Deployment with its only pod on the first node, a budget that needs it, and a second node.
pub(crate) async fn with_web(components: &[&str]) -> Installed {
    let installed = Installed::with("self-claim", components, &["--nodes", "2"]).await;
    let only = "--node node-0 --namespace shop --name web --count 1 --owner deployment --pdb 1";
    let only: Vec<&str> = only.split(' ').collect();
    installed.testbed.make_pods(&only);
    installed
}

/// The policy refuses these patches, and says why.
pub(crate) async fn are_refused(driver: &kube::Client, path: &str, forged: Vec<(Value, &'static str)>) {
    for (body, refusal) in forged {
        let (code, said) = ask(driver, Method::PATCH, path, &body).await;
        assert_eq!(code, 403, "{body}: {said}");
        let message = said["message"].as_str().unwrap_or_default();
        let words = format!("the driver of node node-0 may {refusal}");
        assert!(message.contains(&words), "{body}: {message}");
    }
}

/// A token without a node may not even make this patch, which a driver may.
pub(crate) async fn needs_a_node(installed: &Installed, path: &str, body: &Value) {
    let bare = client(&installed.kubeconfig("scupper", None).await).await;
    let (code, said) = ask(&bare, Method::PATCH, path, body).await;
    let message = said["message"].as_str().unwrap_or_default();
    assert!(code == 403 && message.contains("names no node"), "{said}");
}

/// The policy refuses what RBAC would allow an account with more rights.
pub(crate) async fn with_more_rights(installed: &Installed, driver: &kube::Client, only: &str) {
    let api = "rbac.authorization.k8s.io";
    installed.create(&[
        json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": "more"},
            "rules": [{"apiGroups": ["apps"], "verbs": ["*"],
                "resources": ["deployments", "deployments/scale", "deployments/status"]}]}),
        json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "more"},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "more"},
            "subjects": [{"kind": "ServiceAccount", "name": "scupper", "namespace": "scupper"}]}),
    ]);
    let mut copy = installed.get(WEB).await;
    copy["metadata"] = json!({"name": "copy", "namespace": "shop"});
    let all = WEB.trim_end_matches("/web").to_owned();
    let fewer = json!({"spec": {"replicas": 0}});
    let status = json!({"status": {"observedGeneration": 9}});
    for (method, path, body) in [
        (Method::PATCH, format!("{WEB}/scale"), fewer),
        (Method::PATCH, format!("{WEB}/status"), status),
        (Method::DELETE, WEB.to_owned(), Value::Null),
        (Method::POST, all, copy),
    ] {
        let refused = async || {
            let (code, said) = ask(driver, method.clone(), &path, &body).await;
            assert_eq!(code, 403, "{method} {path}: {said}");
            let message = said["message"].as_str().unwrap_or_default();
            message.contains(&format!("the driver of node node-0 may only {only}"))
        };
        // A binding takes effect after a moment; until then RBAC refuses.
        until(refused, || format!("{method} {path}")).await;
    }
}

/// As the driver writes it.
fn restart() -> Value {
    json!({
        "metadata": {"annotations": {"scupper.dev/surge": "drain-node-0"}},
        "spec": {"template": {"metadata": {"annotations": {RESTARTED: "2026-01-01T00:00:00Z"}}}},
    })
}

/// Patches, and what the answer says.
fn forged() -> Vec<(Value, &'static str)> {
    let template = "change nothing in the pod template of deployment web";
    let spec = "not change the spec of deployment web";
    let metadata = "change no metadata of deployment web";
    let container = |field: &str, value: Value| {
        let container = json!({"name": "main", "image": "none", field: value});
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    };
    let marked = |change: Value| json!({"spec": {"template": {"metadata": change}}});
    let mut hidden = restart();
    hidden["spec"]["replicas"] = 3.into();
    vec![
        (json!({"spec": {"replicas": 0}}), spec),
        (hidden, spec),
        (json!({"spec": {"paused": true}}), spec),
        (
            json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
            spec,
        ),
        (json!({"spec": {"minReadySeconds": 60}}), spec),
        (container("image", json!("mine")), template),
        (container("command", json!(["sh"])), template),
        (
            json!({"spec": {"template": {"spec": {"serviceAccountName": "admin"}}}}),
            template,
        ),
        (marked(json!({"labels": {"mine": "1"}})), template),
        (marked(json!({"annotations": {"mine": "1"}})), template),
        (json!({"metadata": {"labels": {"mine": "1"}}}), metadata),
        (json!({"metadata": {"annotations": {"mine": "1"}}}), metadata),
        (
            json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": null}}}),
            metadata,
        ),
        (
            json!({"metadata": {"finalizers": ["example.com/held"]}}),
            metadata,
        ),
    ]
}

/// The driver itself, with nothing but the rights of the components.
async fn is_drained(installed: &Installed, own: &Path) {
    let driver = drained(installed, own, "{timeout: 2m}").await;
    let web = installed.get(WEB).await;
    let annotations = &web["spec"]["template"]["metadata"]["annotations"];
    assert!(annotations[RESTARTED].is_string(), "{web:#}");
    assert_eq!(installed.pods("shop", "node-0").await, 0, "{}", driver.log());
    assert_eq!(installed.pods("shop", "node-1").await, 1);
}

/// The driver of node-0 when it has drained it. `surge`: its `drain.surge`.
pub(crate) async fn drained(installed: &Installed, own: &Path, surge: &str) -> Driver {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("scupper.yaml");
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\ndrain: {{surge: {surge}}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let config = format!("--config={}", config.display());
    let driver = Driver::start(installed, "node-0", own, &["--force", &config]).await;
    installed.create(&[event("drain-node-0", "drain.slm.k8s.io", "node-0")]);
    until(
        async || installed.condition("node-0", "Drained").await == "True",
        || driver.log(),
    )
    .await;
    driver
}
