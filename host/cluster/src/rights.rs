//! The rights that the driver needs, and a check of them by the API server.

use std::borrow::Cow;

use futures::future::try_join_all;
use scupper_engine::{SurgeMethod, SurgeSettings};
use serde::Deserialize;
use serde_json::json;

use super::kubelet::KUBELET_LEASE_NAMESPACE;
use super::{Cluster, DrainRequestResource, ReadError};

/// One right, as RBAC has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// `get`, `list`, ...
    pub verb: &'static str,
    /// The API group; empty for the core.
    pub group: String,
    /// The resource.
    pub resource: Cow<'static, str>,
    /// Its subresource, or empty.
    pub subresource: &'static str,
    /// The namespace; empty for all, or for a resource without namespaces.
    pub namespace: String,
    /// Its purpose.
    pub purpose: &'static str,
    /// The driver cannot work without it; otherwise it only reports less.
    pub required: bool,
}

impl Right {
    /// `patch nodes/status`, `create events.events.k8s.io`.
    pub fn name(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let dot = if self.group.is_empty() { "" } else { "." };
        let (resource, subresource, group) = (&self.resource, self.subresource, &self.group);
        format!("{} {resource}{slash}{subresource}{dot}{group}", self.verb)
    }
}

/// Verbs, group, resource with subresource, purpose, and whether it is required.
type Row = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    bool,
);

/// The rights for every drain.
const DRAIN: &[Row] = &[
    (&["get", "list", "watch"], "", "nodes", "to see the node", true),
    (
        &["patch"],
        "",
        "nodes",
        "to cordon it and to keep the checkpoint",
        true,
    ),
    (&["patch"], "", "nodes/status", "to write its conditions", true),
    (
        &["get", "create", "patch", "delete"],
        "coordination.k8s.io",
        "leases",
        "to be the only one that drains the node",
        true,
    ),
    (&["list", "watch"], "", "pods", "to see its pods", true),
    (&["create"], "", "pods/eviction", "to ask pods to leave", true),
    (
        &["delete"],
        "",
        "pods",
        "for policies that delete instead of evict",
        false,
    ),
    (
        &["list"],
        "apps",
        "daemonsets",
        "to see whether a pod's DaemonSet still exists",
        true,
    ),
    (
        &["list", "watch"],
        "policy",
        "poddisruptionbudgets",
        "to say which budget holds a pod",
        false,
    ),
    (
        &["create", "patch"],
        "events.k8s.io",
        "events",
        "to tell people in Events",
        false,
    ),
];

/// The rights for reading LifecycleEvents, in either group.
const LIFECYCLE: &[Row] = &[
    (
        &["get", "list", "watch", "create", "patch", "delete"],
        "",
        "lifecycletransitions",
        "to publish transitions",
        true,
    ),
    (
        &["list", "watch"],
        "",
        "lifecycleevents",
        "to hear of drains",
        true,
    ),
];

/// Why a right to claim LifecycleEvents is needed.
pub const CLAIM_PURPOSE: &str = "to claim and end them";

/// The further rights for claiming them.
const CLAIM: &[Row] = &[
    (
        &["get", "patch", "delete"],
        "",
        "lifecycleevents",
        CLAIM_PURPOSE,
        true,
    ),
    (&["patch"], "", "lifecycleevents/status", CLAIM_PURPOSE, true),
];

/// Returns all rights that the driver needs, with its lifecycle objects in `group` and its leases in the namespace
/// `leases`. `claims`: it claims events itself.
pub fn needed(group: &str, claims: bool, leases: &str) -> Vec<Right> {
    let claim = if claims { CLAIM } else { &[] };
    let lifecycle = LIFECYCLE.iter().chain(claim).map(|row| (group, row));
    let rows = DRAIN.iter().map(|row| (row.1, row)).chain(lifecycle);
    let rights = rows.flat_map(|(group, (verbs, _, resource, purpose, required))| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        verbs.iter().map(move |verb| Right {
            verb,
            group: group.to_owned(),
            resource: resource.into(),
            subresource,
            namespace: match resource {
                "events" => "default",
                "leases" => leases,
                _ => "",
            }
            .to_owned(),
            purpose,
            required: *required,
        })
    });
    rights.collect()
}

/// Why a right for facts is needed.
pub const FACT_PURPOSE: &str = "for what its policies ask";

/// Returns the rights for facts that a policy asks for, by the target of its grant, beyond those that every drain requires.
/// All are required: without them no plan is made. `group`: that of the lifecycle objects.
pub fn needed_for_fact(target: &str, group: &str) -> Vec<Right> {
    const READ: &[&str] = &["get", "list"];
    let rows: &[(&str, &'static str, &[&'static str])] = match target {
        "request" => &[(group, "lifecycleevents", &["get"])],
        "namespaces" => &[("", "namespaces", READ)],
        "budgets" => &[("policy", "poddisruptionbudgets", &["list"])],
        "owners" => &[
            ("apps", "replicasets", READ),
            ("apps", "deployments", READ),
            ("apps", "statefulsets", READ),
            ("apps", "daemonsets", READ),
            ("batch", "jobs", READ),
            ("batch", "cronjobs", READ),
            ("", "replicationcontrollers", READ),
        ],
        "resources" => &[
            ("resource.k8s.io", "resourceclaims", READ),
            ("resource.k8s.io", "resourceslices", &["list"]),
        ],
        "volumes" => &[
            ("", "persistentvolumeclaims", READ),
            ("", "persistentvolumes", READ),
            ("storage.k8s.io", "volumeattachments", &["list"]),
        ],
        _ => &[],
    };
    let mut rights = Vec::new();
    for &(group, resource, verbs) in rows {
        let of_verb = |&verb: &&'static str| right(verb, group, resource, FACT_PURPOSE);
        rights.extend(verbs.iter().map(of_verb));
    }
    rights
}

/// Why a right for pre-flight findings is needed.
const CERTAINTY_PURPOSE: &str = "to say for certain which budgets never let a pod go";

/// Returns the rights with which a drain that does not refuse such pods is certain about them. Without them it reports less.
pub fn needed_for_certainty() -> Vec<Right> {
    let facts = ["namespaces", "owners"].into_iter();
    let all = facts.flat_map(|fact| needed_for_fact(fact, ""));
    let used = all.filter(|right| (right.verb == "get") == (right.resource == "namespaces"));
    let optional = used.map(|right| Right {
        purpose: CERTAINTY_PURPOSE,
        required: false,
        ..right
    });
    optional.collect()
}

/// Why a right for volumes is needed.
pub const VOLUME_PURPOSE: &str = "to wait for volumes";

/// Returns the rights for `drain.wait-for-volumes`. Without the last, drains also wait for volumes of pods that stay.
pub fn needed_for_volumes() -> Vec<Right> {
    let attachments = |verb| right(verb, "storage.k8s.io", "volumeattachments", VOLUME_PURPOSE);
    let volumes = Right {
        required: false,
        ..of_core("get", "persistentvolumes", VOLUME_PURPOSE)
    };
    vec![attachments("list"), attachments("watch"), volumes]
}

/// Why a right for local data is needed.
pub const LOCAL_DATA_PURPOSE: &str = "to see which volumes only the node can use";

/// Returns the rights for `drain.local-data`. Without them, a drain reports that it cannot tell.
pub fn needed_for_local_data() -> Vec<Right> {
    let rights = [
        ("get", "persistentvolumeclaims"),
        ("list", "persistentvolumeclaims"),
        ("get", "persistentvolumes"),
        ("list", "persistentvolumes"),
    ];
    rights
        .map(|(verb, resource)| of_core(verb, resource, LOCAL_DATA_PURPOSE))
        .into()
}

/// Why a right for the deadline is needed.
pub const FORCE_PURPOSE: &str = "to delete pods shortly before the deadline (drain.at-deadline)";

/// Returns the rights for `drain.at-deadline`.
pub fn needed_at_deadline() -> Vec<Right> {
    vec![of_core("delete", "pods", FORCE_PURPOSE)]
}

/// Why a right for annotations of pods is needed.
pub const ANNOTATE_PURPOSE: &str = "for policies that annotate pods";

/// Returns the rights for policies with the grant `pod-annotations`. The driver itself never patches pods.
pub fn needed_for_pod_annotations() -> Vec<Right> {
    vec![of_core("patch", "pods", ANNOTATE_PURPOSE)]
}

/// Why a right for a machine that is off is needed.
const NODE_IS_OFF_PURPOSE: &str = "to drain a machine that is off (scupper drain --node-is-off)";

/// Returns the rights that such a drain needs beyond those of other drains, or instead of evictions. It runs with the
/// rights of the user who types the command.
pub fn needed_for_node_is_off() -> Vec<Right> {
    let rights = [("get", "nodes"), ("patch", "nodes"), ("delete", "pods")];
    let rights = rights.map(|(verb, resource)| of_core(verb, resource, NODE_IS_OFF_PURPOSE));
    let kubelet_lease = Right {
        namespace: KUBELET_LEASE_NAMESPACE.to_owned(),
        ..right("get", "coordination.k8s.io", "leases", NODE_IS_OFF_PURPOSE)
    };
    rights.into_iter().chain([kubelet_lease]).collect()
}

fn of_core(verb: &'static str, resource: &'static str, purpose: &'static str) -> Right {
    right(verb, "", resource, purpose)
}

/// One that is required, in every namespace.
fn right(verb: &'static str, group: &str, resource: &'static str, purpose: &'static str) -> Right {
    Right {
        verb,
        group: group.to_owned(),
        resource: resource.into(),
        subresource: "",
        namespace: String::new(),
        purpose,
        required: true,
    }
}

/// Why a right for `drain.surge` is needed.
pub const fn surge_purpose(method: SurgeMethod) -> &'static str {
    match method {
        SurgeMethod::Restart => "to restart Deployments (drain.surge)",
        SurgeMethod::Scale => "to raise the replicas of Deployments (drain.surge)",
    }
}

/// Returns the rights for `drain.surge` beyond those to read namespaces and owners.
pub fn needed_for_surge(surge: &SurgeSettings) -> Vec<Right> {
    let deployments = ["get", "patch"].map(|verb| (verb, "apps", "deployments"));
    let autoscalers = ("list", "autoscaling", "horizontalpodautoscalers");
    let also = (surge.method == SurgeMethod::Scale).then_some(autoscalers);
    let rows: Vec<_> = deployments.into_iter().chain(also).collect();
    let rights = |namespace: &str| {
        let there = |&(verb, group, resource): &(&'static str, &str, &'static str)| Right {
            namespace: namespace.to_owned(),
            ..right(verb, group, resource, surge_purpose(surge.method))
        };
        rows.iter().map(there).collect::<Vec<_>>()
    };
    if surge.namespaces.is_empty() {
        rights("")
    } else {
        surge.namespaces.iter().flat_map(|name| rights(name)).collect()
    }
}

/// Why a right for DrainRequests is needed.
pub const REQUEST_PURPOSE: &str = "to serve DrainRequests";

/// Returns the rights for DrainRequests of a namespace.
pub fn needed_for_drain_requests(kind: &DrainRequestResource, namespace: &str) -> Vec<Right> {
    let of_kind = |(verb, subresource): (&'static str, &'static str)| Right {
        resource: kind.plural.clone().into(),
        subresource,
        namespace: namespace.to_owned(),
        ..right(verb, &kind.group, "", REQUEST_PURPOSE)
    };
    let verbs = [("get", ""), ("list", ""), ("watch", ""), ("patch", "status")];
    verbs.map(of_kind).into()
}

/// Replaces the eviction right with those to evict as the node, by impersonation.
pub fn evicting_as_node(rights: Vec<Right>) -> Vec<Right> {
    let purpose = "to ask pods to leave, as the node";
    let mut rights = rights;
    rights.retain(|right| right.subresource != "eviction");
    rights.push(Right {
        subresource: "eviction",
        ..of_core("impersonate-on:associated-node:create", "pods", purpose)
    });
    let group = "authentication.k8s.io";
    rights.push(right("impersonate:associated-node", group, "nodes", purpose));
    rights
}

#[derive(Debug, Deserialize)]
struct Review {
    #[serde(default)]
    status: ReviewStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    allowed: bool,
}

#[derive(Debug, Deserialize)]
struct SelfSubjectReview {
    status: SelfSubjectReviewStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelfSubjectReviewStatus {
    user_info: UserInfo,
}

#[derive(Debug, Deserialize)]
struct UserInfo {
    username: String,
}

impl Cluster {
    /// Returns the name of the user, as the API server knows it. `None`: it does not say.
    pub async fn user(&self) -> Option<String> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let reviewed = self.create::<SelfSubjectReview>(path, &review).await;
        let name = reviewed.ok()?.status.user_info.username;
        (!name.is_empty()).then_some(name)
    }

    /// Returns the rights that the user lacks. `node`: rights on nodes are checked for this node alone.
    pub async fn missing_rights(&self, rights: Vec<Right>, node: &str) -> Result<Vec<Right>, ReadError> {
        let asked = rights.into_iter().map(|right| async move {
            let allowed = self.may(&right, node).await?;
            Ok::<_, ReadError>((!allowed).then_some(right))
        });
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }

    /// Returns whether the user may create Leases in this namespace. `None`: the API server does not say.
    pub async fn may_make_leases(&self, namespace: &str) -> Option<bool> {
        let of_drains = needed("", false, namespace).into_iter();
        let mut rights = of_drains.filter(|right| right.resource == "leases" && right.verb == "create");
        self.may(&rights.next()?, "").await.ok()
    }

    async fn may(&self, right: &Right, node: &str) -> Result<bool, ReadError> {
        let names_one = right.resource == "nodes" && matches!(right.verb, "get" | "patch");
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": right.verb,
                "group": right.group,
                "resource": right.resource,
                "subresource": right.subresource,
                "namespace": right.namespace,
                "name": if names_one { node } else { "" },
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let reviewed = self.create::<Review>(path, &review).await;
        let reviewed = reviewed.map_err(|fault| fault.read("review our own rights"))?;
        Ok(reviewed.status.allowed)
    }
}
