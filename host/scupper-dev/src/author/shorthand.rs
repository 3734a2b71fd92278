//! Nodes, pods and budgets in short form: missing fields have the usual value.

use std::collections::BTreeMap;

use scupper_api::facts::{DisruptionAction, HOSTNAME, JobFailures, Metadata, Namespace, Owner};
use scupper_engine::{
    Budget, Condition, Controller, Deletion, Node, Pod, PodPhase, PodRef, Selector, Time, Uid, UnhealthyPods,
};
use serde::Deserialize;

use super::fact_objects::{Claims, FactObjects, Requests, Volumes};
use super::values::{ScenarioDuration, text_or};

type Texts = BTreeMap<String, String>;
/// A change: null removes a field.
type Changes = BTreeMap<String, Option<String>>;

/// Fields of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct PodFields {
    /// `namespace/name`
    pub(super) name: String,
    labels: Changes,
    annotations: Changes,
    conditions: BTreeMap<String, ConditionForm>,
    /// `KIND/NAME`, or an empty text for none.
    controller: Option<String>,
    phase: Option<String>,
    ready: Option<bool>,
    priority: Option<i32>,
    priority_class: Option<String>,
    grace_period: Option<ScenarioDuration>,
    empty_dir: Option<bool>,
    host_network: Option<bool>,
    hostname: Option<String>,
    finalizers: Option<Vec<String>>,
    /// What it requests, for policies that ask: `{nvidia.com/gpu: 1, cpu: 500m}`.
    requests: Option<Requests>,
    /// Its ResourceClaims with their devices.
    resource_claims: Option<Claims>,
    /// Another node: only policies that ask for peers see the pod.
    pub(super) node: Option<String>,
    /// Its `spec.schedulingGroup`.
    scheduling_group: Option<String>,
    /// Its volumes by name, for policies that ask for them.
    volumes: Option<Volumes>,
    /// A static pod's copy in the API.
    mirror: bool,
    /// The driver runs in it.
    pub(super) driver: bool,
    /// The time until it terminates; its grace period at most. Default: one second.
    pub(super) ends_after: Option<ScenarioDuration>,
}

text_or! {
    /// A pod: its name, or more.
    PodForm, PodFields, |name| PodFields { name, ..PodFields::default() }
}

/// Fields of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct NodeFields {
    pub(super) name: String,
    labels: Changes,
    annotations: Changes,
    conditions: BTreeMap<String, ConditionForm>,
    cordoned: Option<bool>,
}

text_or! {
    /// A node: its name, or more.
    NodeForm, NodeFields, |name| NodeFields { name, ..NodeFields::default() }
}

/// A condition: its status, or more.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConditionFields {
    status: String,
    reason: String,
    message: String,
}

#[derive(Clone, Debug, Default)]
struct ConditionForm(ConditionFields);

impl<'de> Deserialize<'de> for ConditionForm {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // An unquoted `True` is a boolean, and still means the status.
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a status such as \"True\", or a map with status, reason and message"
        )]
        enum Any {
            Bool(bool),
            Text(String),
            Fields(ConditionFields),
        }
        let status = |status: String| ConditionFields {
            status,
            ..ConditionFields::default()
        };
        Ok(Self(match Any::deserialize(from)? {
            Any::Bool(true) => status("True".to_owned()),
            Any::Bool(false) => status("False".to_owned()),
            Any::Text(text) => status(text),
            Any::Fields(fields) => fields,
        }))
    }
}

/// A disruption budget.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetForm {
    /// `namespace/name`
    name: String,
    /// Labels; without them it selects every pod of its namespace.
    #[serde(default)]
    selector: Texts,
    /// `status.disruptionsAllowed`
    allowed: i32,
    /// `status.expectedPods`: its pods on all nodes, all of them healthy. Without it those on this node.
    #[serde(default)]
    pub(super) pods: Option<i32>,
}

/// A workload that owns pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct OwnerFields {
    /// `namespace/KIND/NAME`
    name: String,
    /// Its own controller, `KIND/NAME`; without it none.
    controller: Option<String>,
    labels: Texts,
    annotations: Texts,
    replicas: Option<u32>,
    ready: Option<u32>,
    strategy: String,
    /// Of a Job.
    failures: Option<FailuresForm>,
}

/// How many failures a Job bears. It has had none, and bears as many as a Job that does not say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct FailuresForm {
    failed: u32,
    limit: u32,
    limit_per_index: Option<u32>,
    on_disruption: DisruptionForm,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum DisruptionForm {
    Ignore,
    #[default]
    Count,
    FailIndex,
    FailJob,
}

impl Default for FailuresForm {
    fn default() -> Self {
        Self {
            failed: 0,
            limit: 6,
            limit_per_index: None,
            on_disruption: DisruptionForm::default(),
        }
    }
}

/// A namespace: its name, or more. A field that is given replaces the whole of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NamespaceFields {
    pub(super) name: String,
    labels: Texts,
    annotations: Texts,
    /// It is being deleted.
    terminating: bool,
}

/// The object that requests the drain.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RequestForm {
    /// Default: `test`, or `DrainRequest` if there are some.
    pub(super) trigger: Option<String>,
    pub(super) name: Option<String>,
    labels: Texts,
    annotations: Texts,
}

impl NamespaceFields {
    /// As the API has it.
    pub(super) fn namespace(&self, now: Time) -> Namespace {
        Namespace {
            metadata: Metadata {
                name: self.name.clone(),
                labels: self.labels.clone(),
                annotations: self.annotations.clone(),
                deletion: self.terminating.then_some(now),
                ..Metadata::default()
            },
        }
    }
}

impl OwnerFields {
    /// As the API has it.
    pub(super) fn owner(&self) -> Result<Owner, String> {
        let (namespace, object) = split(&self.name)?;
        let above = self.controller.as_deref().map(reference).transpose()?;
        Ok(Owner {
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            replicas: self.replicas,
            ready_replicas: self.ready.or(self.replicas),
            strategy: self.strategy.clone(),
            failures: self.failures.as_ref().map(FailuresForm::failures),
            controller: above,
            ..Owner::bare(&namespace, reference(&object)?)
        })
    }
}

impl FailuresForm {
    fn failures(&self) -> JobFailures {
        JobFailures {
            failed: self.failed,
            limit: self.limit,
            limit_per_index: self.limit_per_index,
            on_disruption: match self.on_disruption {
                DisruptionForm::Ignore => DisruptionAction::Ignore,
                DisruptionForm::Count => DisruptionAction::Count,
                DisruptionForm::FailIndex => DisruptionAction::FailIndex,
                DisruptionForm::FailJob => DisruptionAction::FailJob,
            },
        }
    }
}

/// `KIND/NAME`
fn reference(text: &str) -> Result<Controller, String> {
    let parts = text.split_once('/');
    let (kind, name) =
        parts.ok_or_else(|| format!("`{text}` is not of the form KIND/NAME, such as Deployment/cart"))?;
    Ok(controller(kind, name))
}

impl RequestForm {
    /// The LifecycleEvent, as the API has it.
    pub(super) fn event(&self) -> Metadata {
        Metadata {
            labels: self.labels.clone(),
            annotations: self.annotations.clone(),
            ..Metadata::default()
        }
    }
}

/// Splits `namespace/name`.
pub(super) fn split(name: &str) -> Result<(String, String), String> {
    match name.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(format!("`{name}` is not of the form namespace/name")),
    }
}

impl PodFields {
    /// A pod with usual labels.
    pub(super) fn labelled(name: String, number: usize) -> Self {
        let label = |key: &str, value: String| (key.to_owned(), Some(value));
        Self {
            name,
            labels: Changes::from([
                label("app.kubernetes.io/name", "cart".to_owned()),
                label("app.kubernetes.io/instance", format!("cart-{}", number % 7)),
                label("app.kubernetes.io/managed-by", "helm".to_owned()),
                label("pod-template-hash", format!("6d4cf56db{}", number % 10)),
            ]),
            ..Self::default()
        }
    }

    /// A running, ready pod of a ReplicaSet, with the given fields.
    pub(super) fn pod(&self, node: &str, uid: String, now: Time) -> Result<Pod, String> {
        let (namespace, name) = split(&self.name)?;
        let mut pod = Pod {
            controller: Some(controller("ReplicaSet", &name)),
            id: PodRef {
                namespace,
                name,
                uid: Uid::new(uid),
            },
            node: node.to_owned(),
            labels: Texts::new(),
            annotations: Texts::new(),
            phase: PodPhase::Running,
            ready: true,
            conditions: Vec::new(),
            priority: 0,
            priority_class: String::new(),
            grace_seconds: 30,
            created: now,
            deletion: None::<Deletion>,
            finalizers: Vec::new(),
            empty_dir: false,
            host_network: false,
            hostname: String::new(),
            cordon_toleration: None,
            volume_claims: Vec::new(),
            host_paths: Vec::new(),
        };
        if self.mirror {
            let key = scupper_engine::MIRROR_ANNOTATION.to_owned();
            pod.annotations.insert(key, "mirror".to_owned());
        }
        self.change(&mut pod, now)?;
        Ok(pod)
    }

    /// Changes the given fields only.
    pub(super) fn change(&self, pod: &mut Pod, now: Time) -> Result<(), String> {
        change(&mut pod.labels, &self.labels);
        change(&mut pod.annotations, &self.annotations);
        set_conditions(&mut pod.conditions, &self.conditions, now);
        if let Some(owner) = &self.controller {
            pod.controller = match owner.split_once('/') {
                Some((kind, name)) => Some(controller(kind, name)),
                None if owner.is_empty() => None,
                None => {
                    return Err(format!(
                        "the controller `{owner}` is not of the form KIND/NAME, such as DaemonSet/agent"
                    ));
                }
            };
        }
        if let Some(phase) = &self.phase {
            pod.phase = match phase.as_str() {
                "Pending" => PodPhase::Pending,
                "Running" => PodPhase::Running,
                "Succeeded" => PodPhase::Succeeded,
                "Failed" => PodPhase::Failed,
                "Unknown" => PodPhase::Unknown,
                other => return Err(format!("unknown pod phase `{other}`")),
            };
        }
        if let Some(span) = self.grace_period {
            pod.grace_seconds = span.0.as_secs();
        }
        set(&mut pod.ready, self.ready.as_ref());
        set(&mut pod.priority, self.priority.as_ref());
        set(&mut pod.priority_class, self.priority_class.as_ref());
        set(&mut pod.empty_dir, self.empty_dir.as_ref());
        set(&mut pod.host_network, self.host_network.as_ref());
        set(&mut pod.hostname, self.hostname.as_ref());
        set(&mut pod.finalizers, self.finalizers.as_ref());
        Ok(())
    }
}

impl PodFields {
    /// Sets what policies learn about the pod when they ask, as far as it is given. `node`: that of the drain.
    pub(super) fn set_facts(&self, pod: &PodRef, node: &str, facts: &mut FactObjects) -> Result<(), String> {
        if let Some(claims) = &self.resource_claims {
            facts.set_claims(pod, node, claims);
        }
        if let Some(volumes) = &self.volumes {
            facts.set_volumes(pod, node, volumes);
        }
        if let Some(group) = &self.scheduling_group {
            facts.set_scheduling_group(pod, group);
        }
        match &self.requests {
            Some(requests) => facts.set_requests(pod, requests),
            None => Ok(()),
        }
    }
}

impl NodeFields {
    /// Changes the given fields only.
    pub(super) fn change(&self, node: &mut Node, now: Time) {
        change(&mut node.labels, &self.labels);
        change(&mut node.annotations, &self.annotations);
        set_conditions(&mut node.conditions, &self.conditions, now);
        set(&mut node.unschedulable, self.cordoned.as_ref());
    }
}

impl BudgetForm {
    /// Converts to the engine's type.
    pub(super) fn budget(&self) -> Result<Budget, String> {
        let (namespace, name) = split(&self.name)?;
        let pods = self.pods.unwrap_or(1).max(0);
        let healthy = pods.max(self.allowed);
        Ok(Budget {
            namespace,
            name,
            selector: Selector {
                labels: self.selector.clone(),
                ..Selector::default()
            },
            unhealthy_pods: UnhealthyPods::default(),
            disruptions_allowed: self.allowed,
            current_healthy: healthy,
            desired_healthy: healthy - self.allowed.max(0),
            expected_pods: healthy,
            limit: None,
            observed: true,
        })
    }
}

/// A node with only a name.
pub(super) fn plain_node(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        uid: Uid::new(format!("uid-of-{name}")),
        labels: [(HOSTNAME.to_owned(), name.to_owned())].into(),
        annotations: Texts::new(),
        unschedulable: false,
        conditions: Vec::new(),
        checkpoint: None,
        cancel: None,
        resource_version: String::new(),
    }
}

fn set<T: Clone>(field: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}

fn change(texts: &mut Texts, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => texts.insert(key.clone(), value.clone()),
            None => texts.remove(key),
        };
    }
}

fn set_conditions(conditions: &mut Vec<Condition>, said: &BTreeMap<String, ConditionForm>, now: Time) {
    for (kind, ConditionForm(said)) in said {
        let before = conditions.iter().position(|condition| condition.kind == *kind);
        let before = before.map(|at| conditions.remove(at));
        // A removed condition has an empty status.
        if said.status.is_empty() {
            continue;
        }
        let since = before
            .filter(|before| before.status == said.status)
            .map_or(Some(now), |before| before.since);
        conditions.push(Condition {
            kind: kind.clone(),
            status: said.status.clone(),
            reason: said.reason.clone(),
            message: said.message.clone(),
            since,
        });
    }
}

fn controller(kind: &str, name: &str) -> Controller {
    Controller {
        api_version: match kind {
            "Job" | "CronJob" => "batch/v1",
            "ReplicationController" => "v1",
            _ => "apps/v1",
        }
        .to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: Uid::new(format!("uid-of-{kind}-{name}")),
        missing: false,
    }
}
