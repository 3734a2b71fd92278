//! The policies' access to the cluster in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::DrainRequestFields;
use scupper_engine::{Controller, Node, Pod, PodRef, Uid};

use super::memory_cluster::MemoryCluster;
use scupper_policy::{
    AccessError, BudgetFact, ClaimFact, ClusterAccess, DeviceAttributes, FactSource, HttpMock,
    HttpMockAnswer, Listed, Marks, NamespaceFact, OwnerFact, PeerFact, Place, PodSpecFact, PolicyEvent,
    VolumeAttachments, VolumeClaimFact, VolumeFact, Wanted, WantedPeers,
};

/// The cluster, shared by the runner and the policies.
#[derive(Clone)]
pub(super) struct SharedCluster(Arc<Mutex<MemoryCluster>>);

impl SharedCluster {
    pub(super) fn new(cluster: MemoryCluster) -> Self {
        Self(Arc::new(Mutex::new(cluster)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, MemoryCluster> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut MemoryCluster) -> Result<T, AccessError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, AccessError>> {
        async move {
            let mut cluster = self.lock();
            if !cluster.is_reachable() {
                return Err(AccessError::Unavailable(
                    "the API server does not answer".to_owned(),
                ));
            }
            act(&mut cluster)
        }
        .boxed()
    }
}

impl ClusterAccess for SharedCluster {
    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        self.ask(|_cluster| Ok(Uid("uid-of-cluster".to_owned())))
    }

    fn node<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.ask(|cluster| Ok(cluster.seen_node()))
    }

    fn pods<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.ask(|cluster| Ok(cluster.pods().cloned().collect()))
    }

    fn annotate_node<'a>(
        &'a self,
        _node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.ask(move |cluster| {
            let _version = cluster.change_node(|node| annotate(&mut node.annotations, key, value));
            Ok(())
        })
    }

    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.ask(move |cluster| {
            let change = |found: &mut Pod| {
                if found.id.uid != pod.uid {
                    return Err(AccessError::NotFound(format!("pod {pod}")));
                }
                annotate(&mut found.annotations, key, value);
                Ok(())
            };
            match cluster.change_pod(&pod.to_string(), None, change)? {
                true => Ok(()),
                false => Err(AccessError::NotFound(format!("pod {pod}"))),
            }
        })
    }

    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        _key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        self.ask(move |_| Err(AccessError::NotFound(format!("secret {namespace}/{name}"))))
    }

    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        self.ask(move |cluster| {
            let about = event.pod.map_or_else(|| event.node.to_owned(), PodRef::to_string);
            cluster
                .emitted
                .push(format!("{} of {about}: {}", event.reason, event.note));
            Ok(())
        })
    }
}

impl FactSource for SharedCluster {
    fn lifecycle_event<'a>(
        &'a self,
        _name: &'a str,
        _uid: &'a str,
    ) -> BoxFuture<'a, Result<Marks, AccessError>> {
        self.ask(|cluster| Ok(cluster.request.clone()))
    }

    fn drain_requests<'a>(
        &'a self,
        _drain: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Arc<DrainRequestFields>>, AccessError>> {
        self.ask(|cluster| Ok(cluster.drain_requests.clone()))
    }

    fn namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>> {
        self.ask(move |cluster| {
            let found = cluster.namespace(name);
            found.ok_or_else(|| AccessError::NotFound(format!("there is no namespace {name}")))
        })
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>> {
        self.ask(|cluster| Ok(cluster.all_namespaces()))
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>> {
        self.ask(|cluster| Ok(cluster.budget_facts()))
    }

    fn owner<'a>(
        &'a self,
        namespace: &'a str,
        reference: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>> {
        self.ask(move |cluster| {
            let like = cluster.owners_like(namespace, reference);
            Ok(like
                .into_iter()
                .find(|owner| owner.reference.name == reference.name))
        })
    }

    fn owners<'a>(&'a self, wanted: &'a Wanted, like: &'a Controller) -> Listed<'a, OwnerFact> {
        self.ask(move |cluster| {
            let found = wanted.places.iter().filter_map(|place| {
                let mut like = cluster.owners_like(&place.0, like).into_iter();
                let owner = like.find(|owner| owner.reference.name == place.1)?;
                Some((place.clone(), owner))
            });
            Ok(Some(found.collect()))
        })
    }

    fn pod_specs<'a>(
        &'a self,
        _node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<Uid, PodSpecFact>, AccessError>> {
        self.ask(|cluster| Ok(cluster.pod_specs()))
    }

    fn resource_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClaimFact>, AccessError>> {
        let place = (namespace.to_owned(), name.to_owned());
        self.ask(move |cluster| Ok(cluster.pod_facts.claims.get(&place).cloned()))
    }

    fn resource_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, ClaimFact> {
        self.ask(move |cluster| Ok(Some(only(&cluster.pod_facts.claims, wanted))))
    }

    fn device_attributes<'a>(
        &'a self,
        _node: &'a str,
    ) -> BoxFuture<'a, Result<DeviceAttributes, AccessError>> {
        self.ask(|cluster| Ok(cluster.pod_facts.attributes.clone()))
    }

    fn volume_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeClaimFact>, AccessError>> {
        let place = (namespace.to_owned(), name.to_owned());
        self.ask(move |cluster| Ok(cluster.pod_facts.volumes.claims.get(&place).cloned()))
    }

    fn volume_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, VolumeClaimFact> {
        self.ask(move |cluster| Ok(Some(only(&cluster.pod_facts.volumes.claims, wanted))))
    }

    fn persistent_volume<'a>(
        &'a self,
        name: &'a str,
        _node: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeFact>, AccessError>> {
        self.ask(move |cluster| Ok(cluster.pod_facts.volumes.volumes.get(name).cloned()))
    }

    fn persistent_volumes<'a>(
        &'a self,
        _node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, VolumeFact>, AccessError>> {
        self.ask(|cluster| Ok(cluster.pod_facts.volumes.volumes.clone()))
    }

    fn volume_attachments(&self) -> BoxFuture<'_, Result<VolumeAttachments, AccessError>> {
        self.ask(|cluster| Ok(cluster.pod_facts.volumes.attachments.clone()))
    }

    fn peers<'a>(&'a self, wanted: &'a WantedPeers) -> BoxFuture<'a, Result<Vec<PeerFact>, AccessError>> {
        self.ask(move |cluster| Ok(cluster.pods_of_namespace(&wanted.namespace)))
    }
}

impl HttpMock for SharedCluster {
    fn answer(&self, method: &str, url: &str) -> HttpMockAnswer {
        self.lock().answers.take(method, url)
    }
}

/// The wanted ones of these.
fn only<T: Clone>(all: &BTreeMap<Place, T>, wanted: &Wanted) -> BTreeMap<Place, T> {
    let found = wanted.places.iter();
    let found = found.filter_map(|place| Some((place.clone(), all.get(place)?.clone())));
    found.collect()
}

fn annotate(annotations: &mut BTreeMap<String, String>, key: &str, value: Option<&str>) {
    match value {
        Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
        None => annotations.remove(key),
    };
}
