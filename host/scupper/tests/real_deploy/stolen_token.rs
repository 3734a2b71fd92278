//! Each right of a driver, field by field: what a stolen token of node-0 can do with it, and what it cannot. The table in
//! deploy/README.md says the same in words. Rights of components that have a policy of their own: `restarts`, `raises`,
//! `drain_requests`.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::installed::{Installed, POD_PREFIX, ask, client, event, transition, until};
use crate::own_node::{EVENTS, LEASES, lease, reported};
use crate::{ALONE, skip};

const NODE: &str = "/api/v1/nodes/node-0";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LIFECYCLE: &str = "/apis/lifecycle.k8s.io/v1alpha1";
/// Instead of a refusal.
const ALLOWED: &str = "";

/// A write, and the words of its refusal, or [`ALLOWED`].
type Attempt = (Value, &'static str);

/// A right, one request by which it is used, and its fields.
struct Use {
    /// Verb, group, resource with subresource.
    right: [&'static str; 3],
    method: Method,
    path: String,
    attempts: Vec<Attempt>,
}

impl Use {
    fn patch(group: &'static str, resource: &'static str, path: &str, attempts: Vec<Attempt>) -> Self {
        Self {
            right: ["patch", group, resource],
            method: Method::PATCH,
            path: path.to_owned(),
            attempts,
        }
    }

    fn create(group: &'static str, resource: &'static str, path: &str, attempts: Vec<Attempt>) -> Self {
        Self {
            right: ["create", group, resource],
            method: Method::POST,
            path: path.to_owned(),
            attempts,
        }
    }

    fn delete(group: &'static str, resource: &'static str, path: &str, attempts: Vec<Attempt>) -> Self {
        Self {
            right: ["delete", group, resource],
            method: Method::DELETE,
            path: path.to_owned(),
            attempts,
        }
    }
}

#[tokio::test]
async fn a_stolen_token_does_with_each_right_what_the_guide_says() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let components = ["own-pods", "pods/delete", "pods/patch"];
    let installed = Installed::with("self-claim", &components, &["--nodes", "2"]).await;
    objects(&installed);
    let token = client(&installed.kubeconfig_on("node-0").await).await;
    installed.grants_pod_annotations(&token, "own").await;
    let uses = uses();
    for Use {
        right,
        method,
        path,
        attempts,
    } in &uses
    {
        for (body, refusal) in attempts {
            // Each is judged by itself.
            let path = format!("{path}?dryRun=All");
            let (code, said) = ask(&token, method.clone(), &path, body).await;
            let message = said["message"].as_str().unwrap_or_default();
            let shown = format!("{right:?}: {method} {path} {body}: {said}");
            if *refusal == ALLOWED {
                assert!(code.is_success(), "{shown}");
            } else {
                assert_eq!(code, 403, "{shown}");
                let whose = message.contains("the driver of node node-0 may");
                assert!(whose && message.contains(refusal), "{refusal}: {shown}");
            }
        }
    }
    covers_all(&installed, &uses).await;
    with_more_rights(&installed, &token).await;
}

/// The table has every right that writes.
async fn covers_all(installed: &Installed, uses: &[Use]) {
    let granted: BTreeSet<[String; 3]> = installed.granted().await.into_iter().collect();
    let mut unused: BTreeSet<_> = granted
        .into_iter()
        .filter(|[verb, ..]| !["get", "list", "watch"].contains(&verb.as_str()))
        .collect();
    for used in uses {
        unused.remove(&used.right.map(str::to_owned));
    }
    assert!(unused.is_empty(), "no attempt uses these: {unused:?}");
}

fn objects(installed: &Installed) {
    let on = |name: &str, node: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"nodeName": node, "automountServiceAccountToken": false, "containers": [{
                "name": "main", "image": "none", "imagePullPolicy": "IfNotPresent",
                "resources": {"requests": {"cpu": "10m"}},
            }]},
        })
    };
    let mut others = reported("node-1");
    others["metadata"]["name"] = "of-others".into();
    let mut own = reported("node-0");
    own["metadata"]["name"] = "own".into();
    installed.create(&[
        on("own", "node-0", json!({})),
        on("mirror", "node-0", json!({"kubernetes.io/config.mirror": "1"})),
        on("other", "node-1", json!({})),
        event("own", "others.example", "node-0"),
        event("other", "others.example", "node-1"),
        transition("drain.slm.k8s.io.node-0", &json!({"nodeName": "node-0"}), "5m"),
        transition("others", &json!({"nodeName": "node-0"}), "5m"),
        transition("drain.slm.k8s.io", &json!({"allNodes": true}), ""),
        lease("node-0"),
        lease("node-1"),
        own,
        others,
    ]);
}

fn uses() -> Vec<Use> {
    [nodes(), pods(), lifecycle_events(), transitions(), the_rest()]
        .into_iter()
        .flatten()
        .collect()
}

fn metadata(field: &str, value: Value) -> Value {
    json!({"metadata": {field: value}})
}

fn owners() -> Value {
    json!([{"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "gone"}])
}

fn nodes() -> Vec<Use> {
    let condition = |kind: &str| {
        let condition = json!({"type": kind, "status": "False", "reason": "Tested", "message": "by a test"});
        json!({"status": {"conditions": [condition]}})
    };
    let (meta, spec) = ("labels, finalizers, owners", "its spec but for unschedulable");
    let (notes, status) = ("annotations of others", "its status but for the conditions");
    let node = vec![
        (json!({"spec": {"unschedulable": true}}), ALLOWED),
        (
            metadata("annotations", json!({"scupper.dev/drain": "{}"})),
            ALLOWED,
        ),
        (metadata("annotations", json!({"example.com/mine": "1"})), notes),
        (metadata("labels", json!({"tier": "gold"})), meta),
        (metadata("finalizers", json!(["example.com/held"])), meta),
        (metadata("ownerReferences", owners()), meta),
        (
            json!({"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}}),
            spec,
        ),
        (json!({"spec": {"providerID": "example://mine"}}), spec),
    ];
    let of_status = vec![
        (condition("Drained"), ALLOWED),
        (condition("DrainInProgress"), ALLOWED),
        (condition("LifecycleTransition"), ALLOWED),
        (condition("Ready"), status),
        (json!({"status": {"capacity": {"example.com/gpu": "8"}}}), status),
        (metadata("annotations", json!({"example.com/mine": "1"})), notes),
    ];
    vec![
        Use::patch("", "nodes", NODE, node),
        Use::patch("", "nodes/status", &format!("{NODE}/status"), of_status),
    ]
}

fn pods() -> Vec<Use> {
    let eviction = |pod: &str, options: Value| {
        json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod, "namespace": "default"}, "deleteOptions": options})
    };
    // The query of a request does not count where its body has options.
    let options = |grace: u32| json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace, "dryRun": ["All"]});
    let image = |image: &str| {
        let mut container = json!({"name": "main", "image": image, "imagePullPolicy": "IfNotPresent"});
        container["resources"] = json!({"requests": {"cpu": "10m"}});
        json!({"spec": {"containers": [container]}})
    };
    let note = |key: &str| metadata("annotations", json!({key: "1"}));
    let granted = note(&format!("{POD_PREFIX}requested"));
    let (only, grace, another) = ("change nothing of pod", "a grace period of 0", "of another node");
    let patches = vec![
        (granted.clone(), ALLOWED),
        (note("example.com/mine"), "only annotations of its policies"),
        (note("scupper.dev/drain"), "only annotations of its policies"),
        (metadata("labels", json!({"app": "bank"})), only),
        (metadata("finalizers", json!(["example.com/held"])), only),
        (metadata("ownerReferences", owners()), only),
        (image("evil.example.com/rootkit:1"), only),
        (json!({"spec": {"activeDeadlineSeconds": 1}}), only),
    ];
    let at = |name: &str| format!("{PODS}/{name}");
    let evict = |name: &str| format!("{PODS}/{name}/eviction");
    let eviction_of = |pod: &str, attempts| Use::create("", "pods/eviction", &evict(pod), attempts);
    vec![
        eviction_of(
            "own",
            vec![
                (eviction("own", json!({})), ALLOWED),
                (eviction("own", options(1)), ALLOWED),
                (eviction("own", options(0)), grace),
            ],
        ),
        eviction_of("other", vec![(eviction("other", json!({})), another)]),
        Use::delete(
            "",
            "pods",
            &at("own"),
            vec![(Value::Null, ALLOWED), (options(1), ALLOWED), (options(0), grace)],
        ),
        Use::delete("", "pods", &at("other"), vec![(Value::Null, another)]),
        Use::delete("", "pods", &at("mirror"), vec![(Value::Null, "the mirror pod")]),
        Use::patch("", "pods", &at("own"), patches),
        Use::patch("", "pods", &at("other"), vec![(granted, another)]),
    ]
}

fn lifecycle_events() -> Vec<Use> {
    let group = "lifecycle.k8s.io";
    let events = format!("{LIFECYCLE}/lifecycleevents");
    let (own, other) = (format!("{events}/own"), format!("{events}/other"));
    let held = metadata("finalizers", json!(["lifecycle.k8s.io/claim-protection"]));
    let claimed = json!({"status": {"claimStatus": "Claimed"}});
    let (only, another) = ("change nothing of lifecycleevent", "of another node");
    let patches = vec![
        (held.clone(), ALLOWED),
        (metadata("finalizers", json!(["example.com/held"])), only),
        (metadata("labels", json!({"mine": "1"})), only),
        (
            metadata("annotations", json!({"scupper.dev/drain-flags": "{}"})),
            only,
        ),
        (metadata("ownerReferences", owners()), only),
    ];
    vec![
        Use::patch(group, "lifecycleevents", &own, patches),
        Use::patch(group, "lifecycleevents", &other, vec![(held, another)]),
        Use::delete(group, "lifecycleevents", &own, vec![(Value::Null, ALLOWED)]),
        Use::delete(group, "lifecycleevents", &other, vec![(Value::Null, another)]),
        Use::patch(
            group,
            "lifecycleevents/status",
            &format!("{own}/status"),
            vec![(claimed.clone(), ALLOWED)],
        ),
        Use::patch(
            group,
            "lifecycleevents/status",
            &format!("{other}/status"),
            vec![(claimed, another)],
        ),
    ]
}

fn transitions() -> Vec<Use> {
    let group = "lifecycle.k8s.io";
    let all = format!("{LIFECYCLE}/lifecycletransitions");
    let at = |name: &str| format!("{all}/{name}");
    let (ours, everywhere) = (json!({"nodeName": "node-0"}), json!({"allNodes": true}));
    let (refused, wording) = (
        "may not write to lifecycletransition",
        "only with the words of own-node.yaml and",
    );
    let mut foreign = transition("drain.slm.k8s.io-uncordon.node-0", &ours, "5m");
    foreign["spec"]["driver"] = "others.example".into();
    let marks = "finalizers, owners, labels or annotations";
    let mut shared = vec![
        (json!({"spec": {"sla": null}}), ALLOWED),
        (json!({"spec": {"end": "drain-started"}}), wording),
        // A drain of any node would end in a second.
        (json!({"spec": {"sla": "1s"}}), wording),
        (json!({"spec": {"sla": "5m"}}), wording),
    ];
    let of_meta = [
        ("labels", json!({"mine": "1"})),
        ("annotations", json!({"mine": "1"})),
        ("finalizers", json!(["example.com/held"])),
        ("ownerReferences", owners()),
    ];
    shared.extend(of_meta.map(|(field, value)| (metadata(field, value), marks)));
    let made = vec![
        (
            transition("drain.slm.k8s.io-uncordon.node-0", &ours, "5m"),
            ALLOWED,
        ),
        (foreign, refused),
        // These names belong to all drivers, or to another one.
        (transition("drain.slm.k8s.io-more", &everywhere, "5m"), refused),
        (transition("drain.slm.k8s.io-uncordon", &ours, "5m"), refused),
        (transition("drain.slm.k8s.io.node-1", &ours, "5m"), refused),
    ];
    let patch = |name, attempts| Use::patch(group, "lifecycletransitions", &at(name), attempts);
    let delete = |name, attempts| Use::delete(group, "lifecycletransitions", &at(name), attempts);
    let longer = json!({"spec": {"sla": "7m"}});
    vec![
        Use::create(group, "lifecycletransitions", &all, made),
        patch("drain.slm.k8s.io", shared),
        patch("drain.slm.k8s.io.node-0", vec![(longer.clone(), ALLOWED)]),
        patch("others", vec![(longer, refused)]),
        delete("drain.slm.k8s.io", vec![(Value::Null, refused)]),
        delete("drain.slm.k8s.io.node-0", vec![(Value::Null, ALLOWED)]),
        delete("others", vec![(Value::Null, refused)]),
    ]
}

/// Leases and Kubernetes Events: their whole content.
fn the_rest() -> Vec<Use> {
    let (group, leases) = ("coordination.k8s.io", "leases of other nodes");
    let held = json!({"spec": {"holderIdentity": "somebody else"}});
    let at = |name: &str| format!("{LEASES}/{name}");
    let counted = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}});
    let (events, others) = ("events.k8s.io", "Events of others");
    vec![
        Use::patch(group, "leases", &at("node-0"), vec![(held.clone(), ALLOWED)]),
        Use::patch(group, "leases", &at("node-1"), vec![(held, leases)]),
        Use::delete(group, "leases", &at("node-0"), vec![(Value::Null, ALLOWED)]),
        Use::delete(group, "leases", &at("node-1"), vec![(Value::Null, leases)]),
        Use::create(group, "leases", LEASES, vec![(lease("node-2"), leases)]),
        Use::create(
            events,
            "events",
            EVENTS,
            // Another node's name may begin like this one's.
            vec![(reported("node-0"), ALLOWED), (reported("node-"), others)],
        ),
        Use::patch(
            events,
            "events",
            &format!("{EVENTS}/own"),
            vec![(counted.clone(), ALLOWED)],
        ),
        Use::patch(
            events,
            "events",
            &format!("{EVENTS}/of-others"),
            vec![(counted, others)],
        ),
    ]
}

/// The policy refuses what RBAC would allow an account with more rights on pods: every verb, every subresource.
async fn with_more_rights(installed: &Installed, token: &kube::Client) {
    let api = "rbac.authorization.k8s.io";
    installed.create(&[
        json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": "more"},
            "rules": [{"apiGroups": [""], "verbs": ["*"], "resources": ["pods", "pods/status",
                "pods/ephemeralcontainers", "pods/binding", "pods/exec"]}]}),
        json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "more"},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "more"},
            "subjects": [{"kind": "ServiceAccount", "name": "scupper", "namespace": "scupper"}]}),
    ]);
    let own = format!("{PODS}/own");
    let mut updated = installed.get(&own).await;
    updated["metadata"]["labels"] = json!({"app": "bank"});
    let mut copy = installed.get(&own).await;
    copy["metadata"] = json!({"name": "copy", "namespace": "default"});
    let debug = json!({"name": "debug", "image": "mine", "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File", "terminationMessagePath": "/dev/termination-log"});
    let bound = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "own"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"}});
    for (method, path, body) in [
        (Method::PUT, own.clone(), updated),
        (Method::POST, PODS.to_owned(), copy),
        (
            Method::PATCH,
            format!("{own}/status"),
            json!({"status": {"message": "mine"}}),
        ),
        (
            Method::PATCH,
            format!("{own}/ephemeralcontainers"),
            json!({"spec": {"ephemeralContainers": [debug]}}),
        ),
        (Method::POST, format!("{own}/binding"), bound),
        (
            Method::POST,
            format!("{own}/exec?command=sh&stdout=true"),
            Value::Null,
        ),
    ] {
        let refused = async || {
            let (code, said) = ask(token, method.clone(), &path, &body).await;
            assert_eq!(code, 403, "{method} {path}: {said}");
            let message = said["message"].as_str().unwrap_or_default();
            // A binding takes effect after a moment; until then RBAC refuses.
            let is_ours = message.contains("the driver of node node-0 may");
            assert!(is_ours || message.contains("cannot"), "{method} {path}: {said}");
            is_ours
        };
        until(refused, || format!("{method} {path}")).await;
    }
}
