//! A cluster that records the writes and the questions, and answers from what a test put into it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::DrainRequestFields;
use scupper_engine::{Budget, Controller, Node, Pod, PodRef, Selector, Uid, UnhealthyPods};
use scupper_policy::{
    AccessError, BudgetFact, ClaimFact, ClusterAccess, DeviceAttributes, DeviceId, FactSource, Listed, Marks,
    NamespaceFact, OwnerFact, PeerFact, Place, PodSpecFact, PolicyEvent, VolumeAttachments, VolumeClaimFact,
    VolumeFact, Wanted, WantedPeers,
};
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
    pub(crate) specs: BTreeMap<Uid, PodSpecFact>,
    /// The pods of each namespace on all nodes.
    pub(crate) peers: Vec<PeerFact>,
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
    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        self.answer(Uid("uid-of-cluster".to_owned()))
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
    fn listed<T: Send + 'static>(
        &self,
        what: &str,
        wanted: &Wanted,
        find: impl Fn(&Place) -> Option<T>,
    ) -> Listed<'_, T> {
        let what = match &wanted.namespace {
            Some(namespace) => format!("{what} of {namespace}"),
            None => format!("all {what}"),
        };
        if wanted.namespace.is_none() && self.lists_no_cluster {
            return self.fact(&what, None);
        }
        let found = wanted.places.iter();
        let found = found.filter_map(|place| Some((place.clone(), find(place)?)));
        self.fact(&what, Some(found.collect()))
    }

    fn fact<T: Send + 'static>(&self, what: &str, fact: T) -> BoxFuture<'_, Result<T, AccessError>> {
        self.asked.lock().unwrap().push(what.to_owned());
        let answer = self.answer(fact);
        async move {
            tokio::time::sleep(self.delay).await;
            answer.await
        }
        .boxed()
    }
}

impl FactSource for FakeCluster {
    fn lifecycle_event<'a>(
        &'a self,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, Result<Marks, AccessError>> {
        self.fact(&format!("event {name} {uid}"), marks("ticket", "42"))
    }

    fn drain_requests<'a>(
        &'a self,
        drain: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Arc<DrainRequestFields>>, AccessError>> {
        self.fact(&format!("requests of {drain}"), self.drain_requests.clone())
    }

    fn namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>> {
        if name.starts_with("no-") {
            self.asked.lock().unwrap().push(format!("namespace {name}"));
            return async move { Err(AccessError::NotFound(format!("no {name}"))) }.boxed();
        }
        let mut found = namespace(name);
        found
            .marks
            .annotations
            .insert("padding".to_owned(), self.padding.clone());
        self.fact(&format!("namespace {name}"), found)
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>> {
        let all = (0..20).map(|number| format!("ns-{number}"));
        self.fact(
            "namespaces",
            all.map(|name| (name.clone(), namespace(&name))).collect(),
        )
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>> {
        let budget = |namespace: &str| BudgetFact {
            expected_pods: 3,
            budget: Budget {
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
            },
        };
        self.fact("budgets", vec![budget("shop"), budget("bank")])
    }

    fn owner<'a>(
        &'a self,
        namespace: &'a str,
        reference: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>> {
        let what = format!("{} {namespace}/{}", reference.kind, reference.name);
        let uid = Uid(format!("uid-of-{}-{}", reference.kind, reference.name));
        let there = Controller {
            uid,
            ..reference.clone()
        };
        self.fact(&what, owner_fact(there))
    }

    fn owners<'a>(&'a self, wanted: &'a Wanted, like: &'a Controller) -> Listed<'a, OwnerFact> {
        let named = |place: &Place| {
            owner_fact(Controller {
                uid: Uid(format!("uid-of-{}-{}", like.kind, place.1)),
                name: place.1.clone(),
                ..like.clone()
            })
        };
        self.listed(&format!("{}s", like.kind), wanted, named)
    }

    fn pod_specs<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<Uid, PodSpecFact>, AccessError>> {
        self.fact(&format!("pods of {node}"), self.specs.clone())
    }

    fn resource_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClaimFact>, AccessError>> {
        self.fact(&format!("claim {namespace}/{name}"), claim_fact(name))
    }

    fn resource_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, ClaimFact> {
        self.listed("claims", wanted, |place| claim_fact(&place.1))
    }

    fn device_attributes<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<DeviceAttributes, AccessError>> {
        let uuid = BTreeMap::from([("uuid".to_owned(), "GPU-1".to_owned())]);
        let attributes = BTreeMap::from([(device_id("gpu-1"), uuid)]);
        self.fact(&format!("devices of {node}"), attributes)
    }

    fn volume_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeClaimFact>, AccessError>> {
        self.fact(
            &format!("volume claim {namespace}/{name}"),
            volume_claim_fact(name),
        )
    }

    fn volume_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, VolumeClaimFact> {
        self.listed("volume claims", wanted, |place| volume_claim_fact(&place.1))
    }

    fn persistent_volume<'a>(
        &'a self,
        name: &'a str,
        node: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeFact>, AccessError>> {
        self.fact(&format!("volume {name} on {node}"), volume_fact(name))
    }

    fn persistent_volumes<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, VolumeFact>, AccessError>> {
        let names = self.specs.values().flat_map(|spec| &spec.volumes);
        let names = names.filter_map(|volume| Some(volume_claim_fact(volume.claim.as_ref()?)?.volume));
        let all = names.filter_map(|name| Some((name.clone(), volume_fact(&name)?)));
        self.fact(&format!("volumes on {node}"), all.collect())
    }

    fn volume_attachments(&self) -> BoxFuture<'_, Result<VolumeAttachments, AccessError>> {
        let attached = ["node-1", "node-2"].map(str::to_owned).to_vec();
        self.fact("attachments", [("pv-data-0".to_owned(), attached)].into())
    }

    fn peers<'a>(&'a self, wanted: &'a WantedPeers) -> BoxFuture<'a, Result<Vec<PeerFact>, AccessError>> {
        let WantedPeers { namespace, label, .. } = wanted;
        let what = match label {
            Some((key, values)) => format!("pods of {namespace} with {key} {values:?}"),
            None => format!("all pods of {namespace}"),
        };
        self.fact(&what, self.peers.clone())
    }
}

/// A claim has the device of its name; `pending-...` has none yet, and `gone-...` does not exist.
fn claim_fact(name: &str) -> Option<ClaimFact> {
    if name.starts_with("gone-") {
        return None;
    }
    let devices = vec![(device_id(name), name.ends_with("-watch"))];
    Some(ClaimFact {
        devices: Some(devices).filter(|_| !name.starts_with("pending-")),
    })
}

/// A claim has the volume `pv-NAME`; `pending-...` has none yet, and `gone-...` does not exist.
fn volume_claim_fact(name: &str) -> Option<VolumeClaimFact> {
    if name.starts_with("gone-") {
        return None;
    }
    let volume = Some(format!("pv-{name}")).filter(|_| !name.starts_with("pending-"));
    Some(VolumeClaimFact {
        volume: volume.unwrap_or_default(),
        storage_class: "fast".to_owned(),
        access_modes: vec!["ReadWriteOnce".to_owned()],
    })
}

/// A volume `pv-local-...` is on the node, and `pv-lost-...` does not exist.
fn volume_fact(name: &str) -> Option<VolumeFact> {
    let node_local = name.starts_with("pv-local-");
    let kind = if node_local { "local" } else { "csi" }.to_owned();
    (!name.starts_with("pv-lost-")).then_some(VolumeFact { kind, node_local })
}

fn device_id(name: &str) -> DeviceId {
    DeviceId {
        driver: "gpu.example.com".to_owned(),
        pool: "pool".to_owned(),
        name: name.to_owned(),
    }
}

fn deployment(name: &str) -> Controller {
    Controller {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
        uid: Uid(format!("uid-of-Deployment-{name}")),
        missing: false,
    }
}

/// A ReplicaSet `NAME-HASH` belongs to the Deployment `NAME`.
fn owner_fact(reference: Controller) -> Option<OwnerFact> {
    if !matches!(reference.kind.as_str(), "ReplicaSet" | "Deployment") || reference.name.starts_with("gone-")
    {
        return None;
    }
    let above = reference.name.split_once('-').map(|(name, _)| deployment(name));
    Some(OwnerFact {
        marks: marks("tier", &reference.name),
        replicas: Some(3),
        ready_replicas: Some(2),
        strategy: if reference.kind == "Deployment" {
            "Recreate"
        } else {
            ""
        }
        .to_owned(),
        controller: above.filter(|_| reference.kind == "ReplicaSet"),
        reference,
    })
}

fn namespace(name: &str) -> NamespaceFact {
    NamespaceFact {
        marks: marks("team", name),
        deletion: None,
    }
}

fn marks(key: &str, value: &str) -> Marks {
    Marks {
        labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        annotations: BTreeMap::new(),
    }
}
