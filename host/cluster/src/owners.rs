//! The owners of pods, for policies that ask about them.

use scupper_api::facts::{DisruptionAction, FactKind, FactObject, JobFailures, Owner};
use scupper_engine::{Controller, Uid};
use serde::Deserialize;

use super::facts::{WireFact, collection};
use super::pod::controller;
use super::wire::{Meta, Object, bounded, nullable};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireOwner {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    replicas: Option<u32>,
    /// Of a Job.
    parallelism: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    strategy: Strategy,
    #[serde(deserialize_with = "nullable")]
    update_strategy: Strategy,
    /// Of a Job, which the API server gives a limit if it was made without one.
    backoff_limit: Option<u32>,
    backoff_limit_per_index: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    pod_failure_policy: FailurePolicy,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct FailurePolicy {
    #[serde(deserialize_with = "nullable")]
    rules: Vec<FailureRule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FailureRule {
    action: String,
    #[serde(deserialize_with = "nullable")]
    on_pod_conditions: Vec<FailureCondition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct FailureCondition {
    #[serde(rename = "type")]
    kind: String,
    /// Empty: `True`.
    #[serde(deserialize_with = "nullable")]
    status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Strategy {
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    ready_replicas: Option<u32>,
    /// Of a DaemonSet.
    desired_number_scheduled: Option<u32>,
    number_ready: Option<u32>,
    /// Of a Job.
    ready: Option<u32>,
    failed: Option<u32>,
}

/// The failures that a Job bears unless it says otherwise.
const DEFAULT_BACKOFF_LIMIT: u32 = 6;

/// A kind of objects that own pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnerKind {
    pub(super) api_version: &'static str,
    /// Where the API serves its group.
    pub(super) root: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
}

const fn of_apps(kind: &'static str, plural: &'static str) -> OwnerKind {
    OwnerKind {
        api_version: "apps/v1",
        root: "/apis/apps/v1",
        kind,
        plural,
    }
}

const fn of_batch(kind: &'static str, plural: &'static str) -> OwnerKind {
    OwnerKind {
        api_version: "batch/v1",
        root: "/apis/batch/v1",
        kind,
        plural,
    }
}

/// The kinds that this edge reads.
pub(super) const OWNER_KINDS: [OwnerKind; 7] = [
    of_apps("Deployment", "deployments"),
    of_apps("ReplicaSet", "replicasets"),
    of_apps("StatefulSet", "statefulsets"),
    of_apps("DaemonSet", "daemonsets"),
    of_batch("Job", "jobs"),
    of_batch("CronJob", "cronjobs"),
    OwnerKind {
        api_version: "v1",
        root: "/api/v1",
        kind: "ReplicationController",
        plural: "replicationcontrollers",
    },
];

impl OwnerKind {
    /// Where the API serves its objects of a namespace.
    pub(super) fn path(self, namespace: &str) -> String {
        collection(self.root, namespace, self.plural)
    }
}

impl Object for WireOwner {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl FailurePolicy {
    /// What the first rule about evicted pods says. Rules about exit codes may come before it; which code the containers of a
    /// pod that is evicted will end with is not known.
    fn on_disruption(&self) -> DisruptionAction {
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.on_pod_conditions.iter().any(FailureCondition::is_disruption));
        match rule.map(|rule| rule.action.as_str()) {
            Some("Ignore") => DisruptionAction::Ignore,
            Some("FailIndex") => DisruptionAction::FailIndex,
            Some("FailJob") => DisruptionAction::FailJob,
            _ => DisruptionAction::Count,
        }
    }
}

impl FailureCondition {
    fn is_disruption(&self) -> bool {
        self.kind == "DisruptionTarget" && matches!(self.status.as_str(), "" | "True")
    }
}

impl WireFact for WireOwner {
    fn into_fact(self, kind: &FactKind) -> FactObject {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        let (api_version, kind) = match kind {
            FactKind::Owner { api_version, kind } => (api_version.clone(), kind.clone()),
            _ => (String::new(), String::new()),
        };
        let replicas = spec
            .replicas
            .or(spec.parallelism)
            .or(status.desired_number_scheduled);
        let failures = (kind == "Job").then(|| JobFailures {
            failed: status.failed.unwrap_or(0),
            limit: spec.backoff_limit.unwrap_or(DEFAULT_BACKOFF_LIMIT),
            limit_per_index: spec.backoff_limit_per_index,
            on_disruption: spec.pod_failure_policy.on_disruption(),
        });
        let ready = status.ready_replicas.or(status.number_ready).or(status.ready);
        let owner = Owner {
            controller: controller(&metadata),
            namespace: metadata.namespace,
            reference: Controller {
                api_version,
                kind,
                name: metadata.name,
                uid: Uid::new(metadata.uid),
                missing: false,
            },
            labels: bounded(metadata.labels),
            annotations: bounded(metadata.annotations),
            replicas,
            // The API server leaves a zero out.
            ready_replicas: ready.or_else(|| replicas.map(|_| 0)),
            strategy: match spec.strategy.kind.as_str() {
                "" => spec.update_strategy.kind,
                _ => spec.strategy.kind,
            },
            failures,
        };
        owner.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Resource, decoded};
    use super::*;
    use serde_json::{Value, json};

    fn kind(api_version: &str, kind: &str) -> FactKind {
        FactKind::Owner {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    fn read(value: Value) -> Owner {
        decoded(&kind("apps/v1", "ReplicaSet"), value)
    }

    fn counts(owner: &Owner) -> (Option<u32>, Option<u32>, &str) {
        (owner.replicas, owner.ready_replicas, &owner.strategy)
    }

    #[test]
    fn each_kind_says_in_its_own_way_how_many_pods_it_wants() {
        let deployment = json!({"metadata": {"name": "cart"}, "spec": {"replicas": 3, "strategy": {"type": "Recreate"}},
            "status": {"readyReplicas": 2}});
        assert_eq!(counts(&read(deployment)), (Some(3), Some(2), "Recreate"));
        let none_ready = json!({"metadata": {"name": "db"}, "spec": {"replicas": 1, "updateStrategy": {"type": "OnDelete"}},
            "status": null});
        assert_eq!(counts(&read(none_ready)), (Some(1), Some(0), "OnDelete"));
        let daemons = json!({"metadata": {"name": "agent"}, "spec": {"updateStrategy": {}},
            "status": {"desiredNumberScheduled": 5, "numberReady": 4}});
        assert_eq!(counts(&read(daemons)), (Some(5), Some(4), ""));
        let job = json!({"metadata": {"name": "train"}, "spec": {"parallelism": 2}, "status": {"ready": 1}});
        assert_eq!(counts(&read(job)), (Some(2), Some(1), ""));
        assert_eq!(
            counts(&read(json!({"metadata": {"name": "nightly"}}))),
            (None, None, "")
        );
    }

    #[test]
    fn a_job_says_what_an_eviction_means_to_it() {
        let failures = |value: Value| {
            decoded::<Owner>(&kind("batch/v1", "Job"), value)
                .failures
                .unwrap()
        };
        let plain = failures(json!({"metadata": {"name": "train"}}));
        assert_eq!((plain.failed, plain.limit, plain.limit_per_index), (0, 6, None));
        assert_eq!(plain.on_disruption, DisruptionAction::Count);
        let condition = |kind: &str, status: Option<&str>| json!({"type": kind, "status": status});
        let rule = |action: &str, condition: Value| json!({"action": action, "onPodConditions": [condition]});
        let rules = json!([
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}, "onPodConditions": null},
            rule("FailJob", condition("ConfigIssue", Some("True"))),
            rule("Count", condition("DisruptionTarget", Some("False"))),
            rule("Ignore", condition("DisruptionTarget", None)),
            rule("FailIndex", condition("DisruptionTarget", Some("True"))),
        ]);
        let job = json!({"metadata": {"name": "train"}, "status": {"failed": 2},
            "spec": {"backoffLimit": 3, "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": rules}}});
        let told = failures(job);
        assert_eq!((told.failed, told.limit, told.limit_per_index), (2, 3, Some(1)));
        assert_eq!(told.on_disruption, DisruptionAction::Ignore);
        assert_eq!(read(json!({"metadata": {"name": "cart"}})).failures, None);
    }

    #[test]
    fn only_the_controller_counts_among_the_owners() {
        let owner = |name: &str, controller: bool| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name,
            "uid": name, "controller": controller})
        };
        let set = json!({"metadata": {"name": "cart-1", "ownerReferences": [owner("other", false), owner("cart", true)]}});
        assert_eq!(read(set).controller.unwrap().name, "cart");
    }

    #[test]
    fn paths_are_those_of_the_kinds_that_are_read() {
        let path = |api_version: &str, of: &str| {
            let resource = Resource::find(&kind(api_version, of));
            resource.map(|resource| resource.path("a/b"))
        };
        let known = |api_version, kind| path(api_version, kind).unwrap();
        assert_eq!(
            known("apps/v1", "Deployment"),
            "/apis/apps/v1/namespaces/a%2Fb/deployments"
        );
        assert_eq!(
            known("batch/v1", "CronJob"),
            "/apis/batch/v1/namespaces/a%2Fb/cronjobs"
        );
        assert_eq!(
            known("v1", "ReplicationController"),
            "/api/v1/namespaces/a%2Fb/replicationcontrollers"
        );
        assert_eq!(path("example.com/v1", "Deployment"), None);
        assert_eq!(path("v1", "Secret"), None);
    }
}
