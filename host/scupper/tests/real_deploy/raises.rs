//! The component `surge-scale`: a driver raises a Deployment by one replica, takes that one back, and changes nothing else.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use crate::installed::{Installed, ask, client, until};
use crate::restarts::{WEB, are_refused, drained, needs_a_node, with_more_rights, with_web};
use crate::{ALONE, skip};

const COMPONENTS: [&str; 3] = ["facts/namespaces", "facts/owners", "surge-scale"];
/// A Deployment whose pods run nowhere, so that it may have any number of them.
const SPARE: &str = "/apis/apps/v1/namespaces/shop/deployments/spare";
const RAISES: &str = "only raise deployment spare by one replica";

#[tokio::test]
async fn a_driver_raises_a_deployment_by_one_replica_and_takes_that_one_back() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let installed = with_web(&COMPONENTS).await;
    let own = installed.kubeconfig_on("node-0").await;
    let driver = client(&own).await;
    installed.create(&[spare()]);
    is_limited(&installed, &driver).await;
    with_more_rights(&installed, &driver, "raise deployment ").await;
    needs_a_node(&installed, SPARE, &raise()).await;
    is_drained(&installed, &own).await;
}

fn spare() -> Value {
    let label = json!({"app": "spare"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "spare", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": label}, "template": {
            "metadata": {"labels": label},
            "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "none"}]},
        }},
    })
}

/// What a driver may do to a Deployment, and what it may not, before a raise and while it stands.
async fn is_limited(installed: &Installed, driver: &kube::Client) {
    let before = installed.get(SPARE).await;
    are_refused(driver, SPARE, forged(&raise())).await;
    let mut unnamed = raise();
    unnamed["metadata"]["annotations"]["scupper.dev/surge"] = Value::Null;
    // Without a raise there is nothing to record or to take back.
    let recorded = |value| json!({"metadata": {"annotations": {"scupper.dev/raised-from": value}}});
    let unrecorded = json!({"spec": {"replicas": 2}});
    let others = [
        unnamed,
        unrecorded,
        recorded("0"),
        recorded("1"),
        recorded(""),
        take_back(0),
    ];
    are_refused(driver, SPARE, others.map(|body| (body, RAISES)).into()).await;
    allows(driver, &raise()).await;

    are_refused(driver, SPARE, forged(&take_back(1))).await;
    let mut again = raise();
    again["spec"]["replicas"] = 3.into();
    let mut from_two = again.clone();
    from_two["metadata"]["annotations"]["scupper.dev/raised-from"] = "2".into();
    let recorded_still = json!({"spec": {"replicas": 1}});
    // The record stays as long as the raise does, or the next raise would not be the only one.
    let forgotten = json!({"metadata": {"annotations": {"scupper.dev/raised-from": null}}});
    let others = [
        again,
        from_two,
        recorded_still,
        take_back(0),
        take_back(3),
        forgotten.clone(),
    ];
    are_refused(driver, SPARE, others.map(|body| (body, RAISES)).into()).await;
    allows(driver, &take_back(1)).await;
    let spec = |object: &Value| object["spec"].clone();
    assert_eq!(spec(&installed.get(SPARE).await), spec(&before));

    // Others have set the replicas since: only the record goes.
    allows(driver, &raise()).await;
    for count in ["--replicas=3", "--replicas=1"] {
        let scale = ["--namespace", "shop", "scale", "deployment/spare", count];
        installed.testbed.kubectl(&scale);
        are_refused(driver, SPARE, vec![(take_back(2), RAISES)]).await;
    }
    allows(driver, &forgotten).await;
    let now = installed.get(SPARE).await;
    assert_eq!(spec(&now), spec(&before));
    assert!(now["metadata"]["annotations"]["scupper.dev/raised-from"].is_null());
}

async fn allows(driver: &kube::Client, body: &Value) {
    let (code, said) = ask(driver, Method::PATCH, SPARE, body).await;
    assert!(code.is_success(), "{body}: {said}");
}

/// As the driver writes it.
fn raise() -> Value {
    json!({
        "metadata": {"annotations": {"scupper.dev/surge": "drain-node-0", "scupper.dev/raised-from": "1"}},
        "spec": {"replicas": 2},
    })
}

fn take_back(replicas: u32) -> Value {
    json!({
        "metadata": {"annotations": {"scupper.dev/raised-from": null}},
        "spec": {"replicas": replicas},
    })
}

/// A write that is allowed, with each of many changes beside it, and what the answer says.
fn forged(allowed: &Value) -> Vec<(Value, &'static str)> {
    let spec = "change nothing in the spec of deployment spare but its replicas";
    let metadata = "change no metadata of deployment spare";
    let container = json!({"name": "main", "image": "mine"});
    let template = |change: Value| json!({"spec": {"template": change}});
    let mut all = vec![
        (template(json!({"spec": {"containers": [container]}})), spec),
        (template(json!({"spec": {"serviceAccountName": "admin"}})), spec),
        (
            template(json!({"metadata": {"annotations": {"mine": "1"}}})),
            spec,
        ),
        (json!({"spec": {"paused": true}}), spec),
        (json!({"spec": {"minReadySeconds": 60}}), spec),
        (
            json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
            spec,
        ),
        (json!({"metadata": {"labels": {"mine": "1"}}}), metadata),
        (json!({"metadata": {"annotations": {"mine": "1"}}}), metadata),
        (
            json!({"metadata": {"finalizers": ["example.com/held"]}}),
            metadata,
        ),
        (json!({"spec": {"replicas": 0}}), RAISES),
        (json!({"spec": {"replicas": 3}}), RAISES),
        (
            json!({"metadata": {"annotations": {"scupper.dev/raised-from": "7"}}}),
            RAISES,
        ),
    ];
    for (change, _) in &mut all {
        let mut whole = allowed.clone();
        merge(&mut whole, change);
        *change = whole;
    }
    all
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}

/// The driver itself, with nothing but the rights of the components.
async fn is_drained(installed: &Installed, own: &Path) {
    let before = installed.get(WEB).await;
    let driver = drained(installed, own, "{timeout: 2m, method: scale}").await;
    let web = installed.get(WEB).await;
    assert_eq!(web["spec"], before["spec"], "{}", driver.log());
    let generation = |web: &Value| web["metadata"]["generation"].as_u64().unwrap();
    assert_eq!(generation(&web), generation(&before) + 2, "{}", driver.log());
    let annotations = &web["metadata"]["annotations"];
    assert!(annotations["scupper.dev/raised-from"].is_null(), "{web:#}");
    assert_eq!(installed.pods("shop", "node-0").await, 0, "{}", driver.log());
    let one_remains = async || installed.pods("shop", "node-1").await == 1;
    until(one_remains, || driver.log()).await;
}
