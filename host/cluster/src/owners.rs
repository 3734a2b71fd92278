//! The owners of pods, for policies that ask about them.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::Controller;
use serde::Deserialize;

use super::facts::ObjectMeta;
use super::listing::Source;
use super::pod::controller;
use super::transport::escaped;
use super::wire::{Meta, Object, nullable};
use super::{Cluster, ReadError};

/// An owner of pods, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOwner {
    /// Its metadata.
    pub meta: ObjectMeta,
    /// How many pods it wants; `None`: it counts none.
    pub replicas: Option<u32>,
    /// How many of them are ready.
    pub ready_replicas: Option<u32>,
    /// The type of its strategy; empty: it has none.
    pub strategy: String,
    /// Its own controller.
    pub controller: Option<Controller>,
}

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
}

impl Cluster {
    /// Reads an owner of pods; `None` if it does not exist, or is of a kind that this edge does not read.
    pub async fn pod_owner(
        &self,
        namespace: &str,
        reference: &Controller,
    ) -> Result<Option<PodOwner>, ReadError> {
        let Some(path) = path_of(namespace, reference) else {
            return Ok(None);
        };
        let path = format!("{path}/{}", escaped(&reference.name));
        let what = format!("{} {}", reference.kind.to_lowercase(), reference.name);
        let found = self.find::<WireOwner>(&path, &what).await?;
        Ok(found.map(WireOwner::into_owner))
    }

    /// Reads owners that are of the kind of this reference, by namespace and name: of one namespace, or of all (`None`).
    /// None if this edge does not read the kind.
    pub async fn pod_owners(
        &self,
        namespace: Option<&str>,
        like: &Controller,
        wanted: &BTreeSet<(String, String)>,
    ) -> Result<BTreeMap<(String, String), PodOwner>, ReadError> {
        let Some(kind) = OwnerKind::find(&like.api_version, &like.kind) else {
            return Ok(BTreeMap::new());
        };
        let path = match namespace {
            Some(namespace) => kind.path(namespace),
            None => kind.path_of_all(),
        };
        let what = format!("list {}s", like.kind.to_lowercase());
        let listed = self
            .read_list_where::<WireOwner>(&Source::all(path), &what, |owner| {
                wanted.contains(&owner.metadata.place())
            })
            .await?;
        let placed = |owner: WireOwner| (owner.metadata.place(), owner.into_owner());
        Ok(listed.into_iter().map(placed).collect())
    }
}

/// A kind of objects that own pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnerKind {
    api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) resource: &'static str,
}

const fn owner_kind(api_version: &'static str, kind: &'static str, resource: &'static str) -> OwnerKind {
    OwnerKind {
        api_version,
        kind,
        resource,
    }
}

/// The kinds that this edge reads.
pub(super) const OWNER_KINDS: [OwnerKind; 7] = [
    owner_kind("apps/v1", "Deployment", "deployments"),
    owner_kind("apps/v1", "ReplicaSet", "replicasets"),
    owner_kind("apps/v1", "StatefulSet", "statefulsets"),
    owner_kind("apps/v1", "DaemonSet", "daemonsets"),
    owner_kind("batch/v1", "Job", "jobs"),
    owner_kind("batch/v1", "CronJob", "cronjobs"),
    owner_kind("v1", "ReplicationController", "replicationcontrollers"),
];

impl OwnerKind {
    pub(super) fn find(api_version: &str, kind: &str) -> Option<Self> {
        let mut kinds = OWNER_KINDS.into_iter();
        kinds.find(|it| it.api_version == api_version && it.kind == kind)
    }

    /// Where the API serves its objects of a namespace.
    pub(super) fn path(self, namespace: &str) -> String {
        format!(
            "{}/namespaces/{}/{}",
            self.root(),
            escaped(namespace),
            self.resource
        )
    }

    /// Where the API serves its objects of all namespaces.
    fn path_of_all(self) -> String {
        format!("{}/{}", self.root(), self.resource)
    }

    fn root(self) -> String {
        let root = match self.api_version {
            "v1" => "/api",
            _ => "/apis",
        };
        format!("{root}/{}", self.api_version)
    }
}

fn path_of(namespace: &str, reference: &Controller) -> Option<String> {
    OwnerKind::find(&reference.api_version, &reference.kind).map(|kind| kind.path(namespace))
}

impl Object for WireOwner {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl WireOwner {
    pub(super) fn into_owner(self) -> PodOwner {
        let (spec, status) = (&self.spec, &self.status);
        let replicas = spec
            .replicas
            .or(spec.parallelism)
            .or(status.desired_number_scheduled);
        let ready = status.ready_replicas.or(status.number_ready).or(status.ready);
        PodOwner {
            replicas,
            // The API server leaves a zero out.
            ready_replicas: ready.or_else(|| replicas.map(|_| 0)),
            strategy: match spec.strategy.kind.as_str() {
                "" => spec.update_strategy.kind.clone(),
                strategy => strategy.to_owned(),
            },
            controller: controller(&self.metadata),
            meta: ObjectMeta::of(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Uid;

    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> PodOwner {
        serde_json::from_value::<WireOwner>(value).unwrap().into_owner()
    }

    fn counts(owner: &PodOwner) -> (Option<u32>, Option<u32>, &str) {
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
        let path = |api_version: &str, kind: &str| {
            path_of(
                "a/b",
                &Controller {
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    name: String::new(),
                    uid: Uid(String::new()),
                    missing: false,
                },
            )
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
