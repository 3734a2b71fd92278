//! Details for users about a pod that is not evicted: its workload, the origin of the budget that blocks it, and which
//! pods of that budget are not ready. `scupper status` reads them with the caller's rights; a drain reads none of them.

use std::collections::BTreeMap;

use scupper_api::facts::{FactKind, Owner};
use scupper_api::{BudgetDetails, UnreadyPod, Workload};
use scupper_engine::{Budget, Controller, Operator, Selector, Time};
use serde::Deserialize;

use super::listing::Source;
use super::transport::escaped;
use super::wire::{Condition, Meta, moment, nullable};
use super::{Cluster, ReadError};

/// The kinds of workloads whose pods are counted. Everybody who may read pods may usually read these; of others only the
/// name is shown.
const REPLICATED: [&str; 3] = ["ReplicaSet", "Deployment", "StatefulSet"];

/// `read`: the object itself, if it was read.
fn workload(reference: &Controller, read: Option<&Owner>) -> Workload {
    Workload {
        kind: reference.kind.clone(),
        name: reference.name.clone(),
        ready: read.and_then(|read| Some((read.ready_replicas?, read.replicas?))),
    }
}

impl Cluster {
    /// Returns the workload of this controller: the Deployment behind a ReplicaSet, else the controller itself.
    pub async fn workload(&self, namespace: &str, controller: &Controller) -> Result<Workload, ReadError> {
        let own = self.replicated(namespace, controller).await?;
        let Some(above) = own.as_ref().and_then(|own| own.controller.as_ref()) else {
            return Ok(workload(controller, own.as_ref()));
        };
        let read = self.replicated(namespace, above).await?;
        Ok(workload(above, read.as_ref()))
    }

    /// The controller whose pods these are to people: the Deployment behind a ReplicaSet, else the controller itself.
    pub async fn top_controller(
        &self,
        namespace: &str,
        controller: &Controller,
    ) -> Result<Controller, ReadError> {
        let own = self.replicated(namespace, controller).await?;
        Ok(own
            .and_then(|own| own.controller)
            .unwrap_or_else(|| controller.clone()))
    }

    /// Reads an owner of pods; `None` if it does not exist, or is of a kind that is only named.
    async fn replicated(&self, namespace: &str, reference: &Controller) -> Result<Option<Owner>, ReadError> {
        if !REPLICATED.contains(&reference.kind.as_str()) {
            return Ok(None);
        }
        let place = (namespace.to_owned(), reference.name.clone());
        self.ask_one(FactKind::owner(reference), place).await
    }

    /// Returns what a budget tells of itself, without its pods; `None` if it does not exist.
    pub async fn budget_details(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BudgetDetails>, ReadError> {
        let path = format!(
            "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{}",
            escaped(namespace),
            escaped(name)
        );
        let what = format!("poddisruptionbudget {name}");
        let found = self.find::<WireOrigin>(&path, &what).await?;
        Ok(found.map(WireOrigin::into_details))
    }

    /// Returns the pods of a budget that are not ready, on any node. Pods that have finished or are being deleted do
    /// not count: they will not become ready.
    pub async fn unready_pods(&self, budget: &Budget) -> Result<Vec<UnreadyPod>, ReadError> {
        let Some(selector) = selector_text(&budget.selector) else {
            return Ok(Vec::new());
        };
        let source = Source {
            path: format!("/api/v1/namespaces/{}/pods", escaped(&budget.namespace)),
            selector: Some(format!("labelSelector={}", escaped(&selector))),
            optional: false,
        };
        let pods = self
            .read_list::<WireReplica>(&source, &format!("list pods in {}", budget.namespace))
            .await?;
        Ok(pods.into_iter().filter_map(WireReplica::into_unready).collect())
    }
}

/// The selector as a query parameter; `None` if it selects nothing or cannot be expressed.
fn selector_text(selector: &Selector) -> Option<String> {
    if selector.nothing {
        return None;
    }
    let labels = selector.labels.iter();
    let mut terms: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    for term in &selector.expressions {
        let (key, values) = (&term.key, term.values.join(","));
        terms.push(match term.operator {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
            Operator::GreaterThan | Operator::LessThan => return None,
        });
    }
    Some(terms.join(","))
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireOrigin {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    status: OriginStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OriginStatus {
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    disrupted_pods: BTreeMap<String, Moment>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
struct Moment(#[serde(deserialize_with = "moment")] Option<Time>);

impl WireOrigin {
    fn into_details(self) -> BudgetDetails {
        let refuses = |it: &&Condition| it.kind == "DisruptionAllowed" && it.status == "False";
        let since = self.status.conditions.iter().find(refuses);
        let granted = self.status.disrupted_pods.into_iter();
        BudgetDetails {
            owner: owner_of(&self.metadata),
            since: since.and_then(|it| it.last_transition_time),
            granted: granted.filter_map(|(pod, at)| Some((pod, at.0?))).collect(),
            unready: Vec::new(),
        }
    }
}

/// Returns the owner, by the strongest hint first: an owner deletes it, a Helm release or another tool rewrites it.
fn owner_of(meta: &Meta) -> Option<String> {
    let owner = meta.owner_references.first();
    let owner = owner.map(|owner| format!("{} {}", owner.kind, owner.name));
    let release = || {
        let name = meta.annotations.get("meta.helm.sh/release-name")?;
        Some(format!("Helm release {name}"))
    };
    let tool = || {
        let tool = meta.labels.get("app.kubernetes.io/managed-by")?;
        Some(format!("managed by {tool}"))
    };
    owner.or_else(release).or_else(tool)
}

/// The fields of a pod that show why it is not ready.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireReplica {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: ReplicaSpec,
    #[serde(deserialize_with = "nullable")]
    status: ReplicaStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaSpec {
    #[serde(deserialize_with = "nullable")]
    node_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaStatus {
    #[serde(deserialize_with = "nullable")]
    phase: String,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    name: String,
    #[serde(deserialize_with = "nullable")]
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    #[serde(deserialize_with = "nullable")]
    reason: String,
    #[serde(deserialize_with = "nullable")]
    message: String,
}

impl WireReplica {
    fn into_unready(self) -> Option<UnreadyPod> {
        let is_over = matches!(self.status.phase.as_str(), "Succeeded" | "Failed");
        let condition = |kind: &str| self.status.conditions.iter().find(|it| it.kind == kind);
        let ready = condition("Ready");
        let is_ready = ready.is_some_and(|it| it.status == "True");
        if is_ready || is_over || self.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let since = ready.and_then(|it| it.last_transition_time);
        Some(UnreadyPod {
            why: self.why(),
            since: since.or(self.metadata.creation_timestamp),
            name: self.metadata.name,
            node: self.spec.node_name,
        })
    }

    /// Returns the scheduler's reason, else a container's, else that of the pod's own condition.
    fn why(&self) -> String {
        let condition = |kind: &str| {
            let refused = |it: &&Condition| it.kind == kind && it.status == "False";
            let found = self.status.conditions.iter().find(refused)?;
            Some(joined(&found.reason, &found.message))
        };
        let waiting = || {
            let init = self.status.init_container_statuses.iter();
            let mut all = init.chain(&self.status.container_statuses);
            all.find_map(|container| {
                let waiting = container.state.waiting.as_ref()?;
                let why = joined(&waiting.reason, &waiting.message);
                Some(format!("container {}: {why}", container.name))
            })
        };
        let reported = condition("PodScheduled").or_else(waiting);
        let reported = reported
            .or_else(|| condition("Ready"))
            .filter(|it| !it.is_empty());
        reported.unwrap_or_else(|| format!("phase {}", self.status.phase))
    }
}

fn joined(reason: &str, message: &str) -> String {
    match (reason, message) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Requirement;
    use serde_json::{Value, json};

    use super::*;

    fn unready(status: Value) -> Option<UnreadyPod> {
        let pod = json!({"metadata": {"name": "cart-3"}, "spec": {"nodeName": null}, "status": status});
        let pod: WireReplica = serde_json::from_value(pod).unwrap();
        pod.into_unready()
    }

    #[test]
    fn the_cause_nearest_to_the_pod_is_named() {
        let unscheduled = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available"}]});
        let pod = unready(unscheduled).unwrap();
        assert_eq!(
            (pod.why.as_str(), pod.node.as_str()),
            ("Unschedulable: 0/3 nodes are available", "")
        );
        let waiting = json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "reason": "Other"}],
            "initContainerStatuses": [{"name": "done", "state": {"terminated": {}}}],
            "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]});
        assert_eq!(unready(waiting).unwrap().why, "container main: ImagePullBackOff");
        let probe = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False",
            "reason": "ContainersNotReady"}]});
        assert_eq!(unready(probe).unwrap().why, "ContainersNotReady");
        assert_eq!(unready(json!({"phase": "Pending"})).unwrap().why, "phase Pending");
        assert_eq!(unready(json!({"phase": "Failed"})), None);
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(unready(ready), None);
    }

    #[test]
    fn a_budget_belongs_to_its_owner_before_any_tool() {
        let origin = |metadata: Value| {
            let status = json!({"disruptedPods": {"a": "1970-01-01T00:00:09Z"}, "conditions": null});
            let wire: WireOrigin =
                serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap();
            wire.into_details()
        };
        let helm = json!({"annotations": {"meta.helm.sh/release-name": "shop"}, "labels": {"app.kubernetes.io/managed-by": "Helm"}});
        assert_eq!(origin(helm).owner.as_deref(), Some("Helm release shop"));
        let owned = json!({"labels": {"app.kubernetes.io/managed-by": "operator"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Cluster", "name": "pg", "uid": "u"}]});
        assert_eq!(origin(owned).owner.as_deref(), Some("Cluster pg"));
        let bare = origin(json!({}));
        assert_eq!(bare.owner, None);
        assert_eq!(
            bare.granted,
            BTreeMap::from([("a".to_owned(), Time::from_millis(9_000))])
        );
    }

    #[test]
    fn selectors_are_written_as_the_api_reads_them() {
        let term = |operator, values: &[&str]| Requirement {
            key: "tier".into(),
            operator,
            values: values.iter().map(|it| (*it).to_owned()).collect(),
        };
        let selector = Selector {
            labels: [("app".to_owned(), "cart".to_owned())].into(),
            expressions: vec![
                term(Operator::In, &["a", "b"]),
                term(Operator::NotIn, &["c"]),
                term(Operator::Exists, &[]),
                term(Operator::DoesNotExist, &[]),
            ],
            nothing: false,
        };
        assert_eq!(
            selector_text(&selector).unwrap(),
            "app=cart,tier in (a,b),tier notin (c),tier,!tier"
        );
        assert_eq!(selector_text(&Selector::NOTHING), None);
    }
}
