//! A whole namespace for pre-flight arithmetic: its pods, and what owns them. A drain reads this only where budgets hold
//! pods and the operator wants such a drain refused.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use scupper_api::facts::{FactKind, Namespace};
use scupper_engine::{Answer, Pod, Uid};
use scupper_pre_flight::{NamespaceState, Owner, Rollout};
use serde::Deserialize;
use tokio::time::sleep;

use super::listing::Source;
use super::owners::{OWNER_KINDS, OwnerKind};
use super::pod::{WirePod, controller};
use super::replicas::raised;
use super::rollout::WireRollout;
use super::transport::escaped;
use super::wire::{Meta, Texts, nullable};
use super::{Cluster, ReadError};

/// The fields of an owner that say how many pods it keeps.
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
    #[serde(deserialize_with = "nullable")]
    template: Template,
    /// Of a CronJob.
    #[serde(deserialize_with = "nullable")]
    job_template: JobTemplate,
    /// Of a Deployment.
    #[serde(flatten)]
    rollout: WireRollout,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    #[serde(deserialize_with = "nullable")]
    spec: JobSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct JobSpec {
    #[serde(deserialize_with = "nullable")]
    template: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    #[serde(deserialize_with = "nullable")]
    metadata: TemplateMeta,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateMeta {
    #[serde(deserialize_with = "nullable")]
    labels: Texts,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    replicas: u32,
    /// Of a Deployment.
    #[serde(deserialize_with = "nullable")]
    updated_replicas: u32,
    /// Of a StatefulSet.
    #[serde(deserialize_with = "nullable")]
    current_revision: String,
    #[serde(deserialize_with = "nullable")]
    update_revision: String,
}

/// The optional read of them.
const AUTOSCALERS: &str = "horizontalpodautoscalers";

/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

impl Cluster {
    /// Reads a namespace; also its autoscalers, if they are wanted and may be read.
    pub async fn namespace_state(
        &self,
        name: &str,
        with_autoscalers: bool,
    ) -> Result<NamespaceState, ReadError> {
        let place = (String::new(), name.to_owned());
        let namespace = self.ask_one::<Namespace>(FactKind::Namespace, place);
        let owners = try_join_all(OWNER_KINDS.map(|kind| self.owners_of_kind(name, kind)));
        let (namespace, pods, owners) = futures::try_join!(namespace, self.pods_in_namespace(name), owners)?;
        let terminating = namespace.is_some_and(|it| it.metadata.deletion.is_some());
        let owners = owners.into_iter().flatten().collect();
        let state = NamespaceState::new(terminating, pods, owners);
        if !with_autoscalers {
            return Ok(state);
        }
        match self.autoscalers_soon(name).await {
            Ok(autoscalers) => Ok(state.with_autoscalers(autoscalers)),
            Err(error @ ReadError::Unavailable { .. }) => Err(error),
            Err(error) => {
                tracing::warn!("no replicas are raised in namespace {name}: {error}");
                Ok(state)
            }
        }
    }

    /// A drain has raised the replicas of a Deployment of this namespace.
    pub async fn is_any_raised(&self, namespace: &str) -> Result<bool, ReadError> {
        let kinds = OWNER_KINDS.into_iter().filter(|kind| kind.kind == "Deployment");
        let owners = try_join_all(kinds.map(|kind| self.owners_of_kind(namespace, kind))).await?;
        Ok(owners.iter().flatten().any(|owner| owner.raised > 0))
    }

    /// Reads its autoscalers. A refusal may be a hiccup.
    async fn autoscalers_soon(&self, name: &str) -> Result<BTreeMap<String, String>, ReadError> {
        loop {
            match self.autoscalers(name).await {
                Err(error) if error.is_forbidden() && self.optional_reads().may_pass(AUTOSCALERS) => {
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
                Ok(autoscalers) => {
                    self.optional_reads().succeeded(AUTOSCALERS);
                    return Ok(autoscalers);
                }
            }
        }
    }

    async fn pods_in_namespace(&self, namespace: &str) -> Result<Vec<Pod>, ReadError> {
        let source = Source::all(format!("/api/v1/namespaces/{}/pods", escaped(namespace)));
        self.read_reduced(&source, "list pods", WirePod::into_engine)
            .await
    }

    async fn owners_of_kind(&self, namespace: &str, kind: OwnerKind) -> Result<Vec<Owner>, ReadError> {
        let source = Source::all(kind.path(namespace));
        let owner = |owner: WireOwner| owner.into_engine(kind.kind);
        self.read_reduced(&source, &format!("list {}", kind.plural), owner)
            .await
    }
}

impl WireOwner {
    fn into_engine(self, kind: &str) -> Owner {
        let (is_rolled_out, is_settled) = (self.is_rolled_out(kind), self.is_settled(kind));
        let rollout = (kind == "Deployment").then(|| self.rollout());
        let parent = controller(&self.metadata).map(|parent| parent.uid);
        let Spec {
            replicas,
            template,
            job_template,
            ..
        } = self.spec;
        let labels = match kind {
            "CronJob" => job_template.spec.template.metadata.labels,
            _ => template.metadata.labels,
        };
        let raised = raised(&self.metadata, replicas);
        // The replica that a drain adds is no change of its owner's.
        let settled = if raised > 0 { is_rolled_out } else { is_settled };
        Owner {
            uid: Uid::new(self.metadata.uid),
            kind: kind.to_owned(),
            name: self.metadata.name,
            parent,
            replicas: replicas
                .filter(|_| counts_replicas(kind))
                .map(|replicas| replicas - raised),
            raised,
            settled,
            labels,
            rollout,
        }
    }

    pub(super) const fn meta(&self) -> &Meta {
        &self.metadata
    }

    /// How many pods a Deployment wants.
    pub(super) fn replicas(&self) -> u32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// The answer to a write that has this result.
    pub(super) fn as_written(&self) -> Answer {
        let version = self.metadata.resource_version.clone();
        Answer::Written { version }
    }

    /// How a Deployment replaces its pods.
    pub(super) fn rollout(&self) -> Rollout {
        self.spec.rollout.clone().into_engine(self.replicas())
    }

    /// Its controller has seen the specification and carried it out.
    pub(super) fn is_settled(&self, kind: &str) -> bool {
        self.is_rolled_out(kind) && self.status.replicas == self.spec.replicas.unwrap_or(1)
    }

    /// Its controller has seen the specification, and all pods that there are have its template.
    fn is_rolled_out(&self, kind: &str) -> bool {
        let (metadata, status) = (&self.metadata, &self.status);
        let observed = status.observed_generation.unwrap_or(0) >= metadata.generation.unwrap_or(0);
        let is_current = match kind {
            "Deployment" => status.updated_replicas == status.replicas,
            "StatefulSet" => status.current_revision == status.update_revision,
            _ => true,
        };
        metadata.deletion_timestamp.is_none() && observed && is_current
    }
}

/// Pods of the other kinds finish, or their number depends on the nodes.
fn counts_replicas(kind: &str) -> bool {
    matches!(
        kind,
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(kind: &str, value: Value) -> Owner {
        serde_json::from_value::<WireOwner>(value)
            .unwrap()
            .into_engine(kind)
    }

    fn deployment() -> Value {
        json!({
            "metadata": {"name": "web", "uid": "u", "generation": 3},
            "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "web"}}}},
            "status": {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2},
        })
    }

    #[test]
    fn a_workload_is_settled_once_its_controller_has_done_what_it_says() {
        let web = read("Deployment", deployment());
        assert_eq!((web.replicas, web.settled, web.parent), (Some(2), true, None));
        assert_eq!(web.labels, BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        for (field, value) in [
            ("/status/observedGeneration", json!(2)),
            ("/status/replicas", json!(3)),
            ("/status/updatedReplicas", json!(1)),
            ("/spec/replicas", json!(3)),
        ] {
            let mut changed = deployment();
            *changed.pointer_mut(field).unwrap() = value;
            assert!(!read("Deployment", changed).settled, "{field}");
        }
        let mut deleted = deployment();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-09-01T10:00:00Z");
        assert!(!read("Deployment", deleted).settled);
    }

    #[test]
    fn a_replica_that_a_drain_has_added_is_not_the_owners() {
        let raised = |from: &str, replicas: u32| {
            let mut web = deployment();
            web["metadata"]["annotations"] = json!({"scupper.dev/raised-from": from});
            web["spec"]["replicas"] = json!(replicas);
            let web = read("Deployment", web);
            (web.replicas, web.raised)
        };
        assert_eq!(raised("2", 3), (Some(2), 1));
        // Its owner has set it since.
        assert_eq!(raised("2", 4), (Some(4), 0));
        assert_eq!(raised("all", 3), (Some(3), 0));
    }

    #[test]
    fn a_raise_does_not_hide_a_rollout() {
        let is_settled = |status: Value| {
            let mut web = deployment();
            web["metadata"]["annotations"] = json!({"scupper.dev/raised-from": "2"});
            web["spec"]["replicas"] = json!(3);
            web["status"] = status;
            read("Deployment", web).settled
        };
        for (replicas, updated) in [(2, 2), (3, 3)] {
            let status = json!({"observedGeneration": 3, "replicas": replicas, "updatedReplicas": updated});
            assert!(is_settled(status), "{updated} of {replicas}");
        }
        for (observed, replicas, updated) in [(2, 3, 3), (3, 3, 1), (3, 4, 3)] {
            let status =
                json!({"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated});
            assert!(
                !is_settled(status),
                "{updated} of {replicas}, generation {observed}"
            );
        }
    }

    #[test]
    fn revisions_of_a_stateful_set_count_and_other_kinds_count_no_replicas() {
        let set = |update: &str| {
            json!({"metadata": {"name": "db", "uid": "u"}, "spec": {"replicas": 1},
                "status": {"replicas": 1, "currentRevision": "a", "updateRevision": update}})
        };
        assert!(read("StatefulSet", set("a")).settled);
        assert!(!read("StatefulSet", set("b")).settled);
        let owners = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "n", "uid": "c", "controller": true}]);
        let job = json!({"metadata": {"name": "n-1", "uid": "u", "ownerReferences": owners}, "spec": {"parallelism": 1}});
        let job = read("Job", job);
        assert_eq!((job.replicas, job.parent), (None, Some(Uid::new("c"))));
        let cron =
            json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"labels": {"app": "n"}}}}}}});
        assert_eq!(read("CronJob", cron).labels.len(), 1);
    }
}
