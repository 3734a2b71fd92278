//! A cluster that records the writes and the questions, and answers from what a test put into it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::DrainRequestFields;
use scupper_api::facts::{
    ClaimedDevice, DeviceId, DeviceSlice, DisruptionAction, FactKind, FactObject, FactQuery, JobFailures,
    Metadata, Namespace, Owner, Peer, PeerSelection, PersistentVolume, PersistentVolumeClaim, Place, PodSpec,
    ResourceClaim, Selection, Texts, VolumeAttachment,
};
use scupper_engine::{Budget, Controller, Node, Pod, PodRef, Selector, Uid, UnhealthyPods};
use scupper_policy::{AccessError, ClusterAccess, FactError, PolicyEvent};
use scupper_policy_spec::Capability;

use super::{node, pod};

/// Records the writes.
#[derive(Default)]
pub(crate) struct FakeCluster {
    /// One line for each write.
    pub(crate) writes: Mutex<Vec<String>>,
    /// Its Secrets, by `namespace/name/key`.
    pub(crate) secrets: Mutex<BTreeMap<String, String>>,
    /// It never answers.
    pub(crate) silent: bool,
    /// It is unreachable.
    pub(crate) away: bool,
    /// It answers what is asked as a fact after so long.
    pub(crate) delay: Duration,
    /// A long annotation of its namespaces.
    pub(crate) padding: String,
    /// It has a bug.
    pub(crate) panics: bool,
    /// What was asked for as a fact.
    pub(crate) asked: Mutex<Vec<String>>,
    /// The DrainRequests of every drain.
    pub(crate) drain_requests: Vec<Arc<DrainRequestFields>>,
    /// What the specs of its pods say.
    pub(crate) specs: BTreeMap<Uid, PodSpec>,
    /// The pods of each namespace on all nodes.
    pub(crate) peers: Vec<Peer>,
    /// There is no right to list the objects of all namespaces.
    pub(crate) lists_no_cluster: bool,
    /// The annotations of its node.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl FakeCluster {
    fn answer<T: Send + 'static>(&self, value: T) -> BoxFuture<'_, Result<T, AccessError>> {
        let answer = async move {
            match self {
                Self { silent: true, .. } => std::future::pending().await,
                Self { panics: true, .. } => panic!("the cluster edge has a bug"),
                Self { away: true, .. } => Err(AccessError::Unavailable("the API server is away".to_owned())),
                _ => Ok(value),
            }
        };
        answer.boxed()
    }

    fn write(
        &self,
        what: Capability,
        name: &str,
        key: &str,
        value: Option<&str>,
    ) -> BoxFuture<'_, Result<(), AccessError>> {
        let value = value.unwrap_or("removed");
        self.writes
            .lock()
            .unwrap()
            .push(format!("{what} {name} {key} {value}"));
        self.answer(())
    }
}

impl ClusterAccess for FakeCluster {
    fn ask<'a>(&'a self, query: &'a FactQuery) -> BoxFuture<'a, Result<Vec<FactObject>, FactError>> {
        self.asked.lock().unwrap().push(Self::text(query));
        let answer = match &query.selection {
            Selection::One((_, name)) if query.kind == FactKind::Namespace && name.starts_with("no-") => {
                return async move { Err(FactError::NotFound(format!("no {name}"))) }.boxed();
            }
            Selection::These { namespace: None, .. } if self.lists_no_cluster => {
                return async { Err(FactError::Forbidden("no right to list these".to_owned())) }.boxed();
            }
            _ => self.answer(self.objects(query)),
        };
        async move {
            tokio::time::sleep(self.delay).await;
            answer.await.map_err(|error| match error {
                AccessError::NotFound(what) => FactError::NotFound(what),
                AccessError::Unavailable(why) => FactError::Unavailable(why),
            })
        }
        .boxed()
    }

    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        self.answer(Uid::new("uid-of-cluster"))
    }

    fn node<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.answer(Node {
            annotations: self.annotations.clone(),
            ..node()
        })
    }

    fn pods<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.answer(vec![pod(1), pod(2), pod(3)])
    }

    fn annotate_node<'a>(
        &'a self,
        node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.write(Capability::NodeAnnotations, node, key, value)
    }

    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        let known = self
            .secrets
            .lock()
            .unwrap()
            .get(&format!("{namespace}/{name}/{key}"))
            .cloned();
        match known {
            Some(value) => self.answer(value.into_bytes()),
            None => async { Err(AccessError::NotFound("secret".to_owned())) }.boxed(),
        }
    }

    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.write(Capability::PodAnnotations, &pod.to_string(), key, value)
    }

    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        let PolicyEvent {
            policy, reason, note, ..
        } = event;
        let kind = if event.warning { "warning" } else { "normal" };
        let about = event
            .pod
            .map_or_else(|| event.node.to_owned(), ToString::to_string);
        self.write(
            Capability::Events,
            &about,
            kind,
            Some(&format!("{policy} {reason} {note}")),
        )
    }
}

impl FakeCluster {
    /// What a query asks for, as tests write it.
    fn text(query: &FactQuery) -> String {
        let one = match &query.kind {
            FactKind::Owner { kind, .. } => kind.as_str(),
            FactKind::Namespace => "namespace",
            FactKind::ResourceClaim => "claim",
            FactKind::PersistentVolumeClaim => "volume claim",
            FactKind::PersistentVolume => "volume",
            FactKind::PodSpec { node } => return format!("pods of {node}"),
            FactKind::DeviceSlice { node } => return format!("devices of {node}"),
            FactKind::VolumeAttachment => return "attachments".to_owned(),
            FactKind::Budget => "budget",
            FactKind::LifecycleEvent | FactKind::DrainRequest | FactKind::Peer => "",
        };
        match &query.selection {
            Selection::All => format!("{one}s"),
            Selection::One((namespace, name)) if namespace.is_empty() => format!("{one} {name}"),
            Selection::One((namespace, name)) => format!("{one} {namespace}/{name}"),
            Selection::Named { name, uid } => format!("event {name} {uid}"),
            Selection::These { namespace, .. } => match namespace {
                Some(namespace) => format!("{one}s of {namespace}"),
                None => format!("all {one}s"),
            },
            Selection::OfDrain(drain) => format!("requests of {drain}"),
            Selection::Peers(PeerSelection { namespace, label, .. }) => match label {
                Some((key, values)) => format!("pods of {namespace} with {key} {values:?}"),
                None => format!("all pods of {namespace}"),
            },
        }
    }

    fn objects(&self, query: &FactQuery) -> Vec<FactObject> {
        match &query.selection {
            Selection::One(place) => self.object(&query.kind, place).into_iter().collect(),
            Selection::These { places, .. } => {
                let found = places.iter().filter_map(|place| self.object(&query.kind, place));
                found.collect()
            }
            Selection::Named { name, uid } => vec![
                Metadata {
                    name: name.clone(),
                    uid: uid.clone(),
                    labels: marks("ticket", "42"),
                    ..Metadata::default()
                }
                .into(),
            ],
            Selection::OfDrain(_) => {
                let requests = self.drain_requests.iter().cloned();
                requests.map(FactObject::DrainRequest).collect()
            }
            Selection::Peers(_) => self.peers.iter().cloned().map(FactObject::from).collect(),
            Selection::All => self.all(&query.kind),
        }
    }

    fn all(&self, kind: &FactKind) -> Vec<FactObject> {
        match kind {
            FactKind::Namespace => {
                let names = (0..20).map(|number| format!("ns-{number}"));
                names.map(|name| self.namespace(&name).into()).collect()
            }
            FactKind::Budget => ["shop", "bank"].map(|namespace| budget(namespace).into()).into(),
            FactKind::PodSpec { .. } => {
                let specs = self.specs.iter().map(|(uid, spec)| PodSpec {
                    uid: uid.as_str().to_owned(),
                    ..spec.clone()
                });
                specs.map(FactObject::from).collect()
            }
            FactKind::DeviceSlice { node } => {
                let uuid = marks("uuid", "GPU-1");
                let slice = DeviceSlice {
                    node: node.clone(),
                    generation: 1,
                    devices: BTreeMap::from([(device_id("gpu-1"), uuid)]),
                };
                vec![slice.into()]
            }
            FactKind::PersistentVolume => {
                let volumes = self.specs.values().flat_map(|spec| &spec.volumes);
                let claims = volumes.filter_map(|volume| volume_claim("", volume.claim.as_ref()?));
                let names: BTreeSet<String> = claims.map(|claim| claim.volume).collect();
                let all = names.iter().filter_map(|name| volume(name));
                all.map(FactObject::from).collect()
            }
            FactKind::VolumeAttachment => {
                let attachment = |node: &str| VolumeAttachment {
                    volume: "pv-data-0".to_owned(),
                    node: node.to_owned(),
                };
                ["node-1", "node-2"].map(|node| attachment(node).into()).into()
            }
            _ => Vec::new(),
        }
    }

    fn object(&self, kind: &FactKind, (namespace, name): &Place) -> Option<FactObject> {
        match kind {
            FactKind::Namespace => Some(self.namespace(name).into()),
            FactKind::Owner { api_version, kind } => {
                owner(namespace, api_version, kind, name).map(FactObject::from)
            }
            FactKind::ResourceClaim => resource_claim(namespace, name).map(FactObject::from),
            FactKind::PersistentVolumeClaim => volume_claim(namespace, name).map(FactObject::from),
            FactKind::PersistentVolume => volume(name).map(FactObject::from),
            _ => None,
        }
    }

    fn namespace(&self, name: &str) -> Namespace {
        Namespace {
            metadata: Metadata {
                name: name.to_owned(),
                labels: marks("team", name),
                annotations: marks("padding", &self.padding),
                ..Metadata::default()
            },
        }
    }
}

/// A claim has the device of its name; `pending-...` has none yet, and `gone-...` does not exist.
fn resource_claim(namespace: &str, name: &str) -> Option<ResourceClaim> {
    let device = ClaimedDevice {
        id: device_id(name),
        admin_access: name.ends_with("-watch"),
    };
    (!name.starts_with("gone-")).then(|| ResourceClaim {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        devices: Some(vec![device]).filter(|_| !name.starts_with("pending-")),
    })
}

/// A claim has the volume `pv-NAME`; `pending-...` has none yet, and `gone-...` does not exist.
fn volume_claim(namespace: &str, name: &str) -> Option<PersistentVolumeClaim> {
    let volume = Some(format!("pv-{name}")).filter(|_| !name.starts_with("pending-"));
    (!name.starts_with("gone-")).then(|| PersistentVolumeClaim {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        volume: volume.unwrap_or_default(),
        storage_class: "fast".to_owned(),
        access_modes: vec!["ReadWriteOnce".to_owned()],
    })
}

/// A volume `pv-local-...` is on the node, and `pv-lost-...` does not exist.
fn volume(name: &str) -> Option<PersistentVolume> {
    let is_local = name.starts_with("pv-local-");
    (!name.starts_with("pv-lost-")).then(|| PersistentVolume {
        name: name.to_owned(),
        kind: if is_local { "local" } else { "csi" }.to_owned(),
        ..PersistentVolume::default()
    })
}

fn device_id(name: &str) -> DeviceId {
    DeviceId {
        driver: "gpu.example.com".to_owned(),
        pool: "pool".to_owned(),
        name: name.to_owned(),
    }
}

fn controller(api_version: &str, kind: &str, name: &str) -> Controller {
    Controller {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: Uid::new(format!("uid-of-{kind}-{name}")),
        missing: false,
    }
}

/// A ReplicaSet `NAME-HASH` belongs to the Deployment `NAME`.
fn owner(namespace: &str, api_version: &str, kind: &str, name: &str) -> Option<Owner> {
    if kind == "Job" {
        let failures = JobFailures {
            failed: 1,
            limit: 1,
            limit_per_index: Some(2),
            on_disruption: DisruptionAction::FailIndex,
        };
        return Some(Owner {
            failures: Some(failures),
            ..Owner::bare(namespace, controller(api_version, kind, name))
        });
    }
    if !matches!(kind, "ReplicaSet" | "Deployment") || name.starts_with("gone-") {
        return None;
    }
    let above = name
        .split_once('-')
        .map(|(name, _)| controller("apps/v1", "Deployment", name));
    Some(Owner {
        labels: marks("tier", name),
        replicas: Some(3),
        ready_replicas: Some(2),
        strategy: if kind == "Deployment" { "Recreate" } else { "" }.to_owned(),
        controller: above.filter(|_| kind == "ReplicaSet"),
        ..Owner::bare(namespace, controller(api_version, kind, name))
    })
}

fn budget(namespace: &str) -> Budget {
    Budget {
        namespace: namespace.to_owned(),
        name: "keep".to_owned(),
        selector: Selector::EVERYTHING,
        unhealthy_pods: UnhealthyPods::AlwaysAllow,
        disruptions_allowed: 0,
        current_healthy: 2,
        desired_healthy: 3,
        expected_pods: 3,
        limit: None,
        observed: true,
    }
}

fn marks(key: &str, value: &str) -> Texts {
    Texts::from([(key.to_owned(), value.to_owned())])
}
