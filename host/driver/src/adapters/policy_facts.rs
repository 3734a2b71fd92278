//! The facts that policies ask for, by means of the cluster edge.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::adapters::policy_access::PolicyClusterAccess;
use scupper_api::DrainRequestFields;
use scupper_cluster::{
    BudgetCounts, ClaimedDevice, ObjectMeta, PeerPod, PeerSelection, PersistentVolume, PodClaim, PodOwner,
    PodSpec, PodVolume, ReadError, ResourceClaim, VolumeAttachment, VolumeClaim,
};
use scupper_engine::{Controller, Uid};
use scupper_policy::{
    AccessError, BudgetFact, ClaimFact, DeviceAttributes, DeviceId, FactSource, Listed, Marks, NamespaceFact,
    OwnerFact, PeerFact, Place, PodClaimFact, PodSpecFact, PodVolumeFact, VolumeAttachments, VolumeClaimFact,
    VolumeFact, Wanted, WantedPeers,
};

impl FactSource for PolicyClusterAccess {
    fn lifecycle_event<'a>(
        &'a self,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, Result<Marks, AccessError>> {
        async move {
            let found = self.cluster.lifecycle_event_meta(name).await.map_err(unread)?;
            let found = found.filter(|event| event.uid == uid).map(marks);
            found.ok_or_else(|| AccessError::NotFound(format!("the LifecycleEvent {name} is gone")))
        }
        .boxed()
    }

    fn drain_requests<'a>(
        &'a self,
        drain: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Arc<DrainRequestFields>>, AccessError>> {
        let served = self.served.borrow().clone();
        let found = served.filter(|served| served.drain == drain);
        let found =
            found.ok_or_else(|| AccessError::NotFound("the DrainRequests of this drain are gone".to_owned()));
        ready(found.map(|found| found.requests)).boxed()
    }

    fn namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>> {
        async move {
            let found = self.cluster.namespace(name).await.map_err(unread)?;
            let found = found.map(namespace_fact);
            found.ok_or_else(|| AccessError::NotFound(format!("there is no namespace {name}")))
        }
        .boxed()
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>> {
        async move {
            let listed = self.cluster.namespaces().await.map_err(unread)?;
            let named = |found: ObjectMeta| (found.name.clone(), namespace_fact(found));
            Ok(listed.into_iter().map(named).collect())
        }
        .boxed()
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>> {
        async move {
            let listed = self.cluster.budgets().await.map_err(unread)?;
            let fact = |counts: BudgetCounts| BudgetFact {
                budget: counts.budget,
                expected_pods: counts.expected_pods,
            };
            Ok(listed.into_iter().map(fact).collect())
        }
        .boxed()
    }

    fn owner<'a>(
        &'a self,
        namespace: &'a str,
        reference: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>> {
        async move {
            let found = self
                .cluster
                .pod_owner(namespace, reference)
                .await
                .map_err(unread)?;
            Ok(found.map(|found| owner_fact(reference, found)))
        }
        .boxed()
    }

    fn owners<'a>(&'a self, wanted: &'a Wanted, like: &'a Controller) -> Listed<'a, OwnerFact> {
        async move {
            let namespace = wanted.namespace.as_deref();
            let listed = self.cluster.pod_owners(namespace, like, &wanted.places).await;
            placed(wanted, listed, |found| owner_fact(like, found))
        }
        .boxed()
    }

    fn pod_specs<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<Uid, PodSpecFact>, AccessError>> {
        async move {
            let listed = self.cluster.pod_specs(node).await.map_err(unread)?;
            Ok(listed.into_iter().map(pod_spec_fact).collect())
        }
        .boxed()
    }

    fn resource_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClaimFact>, AccessError>> {
        async move {
            let found = self.cluster.resource_claim(namespace, name).await;
            Ok(found.map_err(unread)?.map(claim_fact))
        }
        .boxed()
    }

    fn resource_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, ClaimFact> {
        async move {
            let namespace = wanted.namespace.as_deref();
            let listed = self.cluster.resource_claims(namespace, &wanted.places).await;
            placed(wanted, listed, claim_fact)
        }
        .boxed()
    }

    fn device_attributes<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<DeviceAttributes, AccessError>> {
        async move {
            let published = self.cluster.device_attributes(node).await.map_err(unread)?;
            Ok(device_attributes(published))
        }
        .boxed()
    }

    fn volume_claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeClaimFact>, AccessError>> {
        async move {
            let found = self.cluster.volume_claim(namespace, name).await;
            Ok(found.map_err(unread)?.map(volume_claim_fact))
        }
        .boxed()
    }

    fn volume_claims<'a>(&'a self, wanted: &'a Wanted) -> Listed<'a, VolumeClaimFact> {
        async move {
            let namespace = wanted.namespace.as_deref();
            let listed = self
                .cluster
                .volume_claims_by_place(namespace, &wanted.places)
                .await;
            placed(wanted, listed, volume_claim_fact)
        }
        .boxed()
    }

    fn persistent_volume<'a>(
        &'a self,
        name: &'a str,
        node: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeFact>, AccessError>> {
        async move {
            let found = self.cluster.persistent_volume(name).await;
            Ok(found.map_err(unread)?.map(|volume| volume_fact(volume, node)))
        }
        .boxed()
    }

    fn persistent_volumes<'a>(
        &'a self,
        node: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, VolumeFact>, AccessError>> {
        async move {
            let listed = self.cluster.persistent_volumes().await.map_err(unread)?;
            let named = |volume: PersistentVolume| (volume.name.clone(), volume_fact(volume, node));
            Ok(listed.into_iter().map(named).collect())
        }
        .boxed()
    }

    fn volume_attachments(&self) -> BoxFuture<'_, Result<VolumeAttachments, AccessError>> {
        async move {
            let listed = self.cluster.volume_attachments().await.map_err(unread)?;
            Ok(volume_attachments(listed))
        }
        .boxed()
    }

    fn peers<'a>(&'a self, wanted: &'a WantedPeers) -> BoxFuture<'a, Result<Vec<PeerFact>, AccessError>> {
        async move {
            let selection = PeerSelection {
                namespace: wanted.namespace.clone(),
                label: wanted.label.clone(),
            };
            let keeps = |pod: &PeerPod| wanted.includes(pod.controller.as_ref(), &pod.groups);
            let listed = self.cluster.peer_pods(&selection, keeps).await;
            Ok(listed.map_err(unread)?.into_iter().map(peer_fact).collect())
        }
        .boxed()
    }
}

/// The listed objects. Without the right to list those of all namespaces there are none.
fn placed<T, F>(
    wanted: &Wanted,
    listed: Result<BTreeMap<Place, T>, ReadError>,
    fact: impl Fn(T) -> F,
) -> Result<Option<BTreeMap<Place, F>>, AccessError> {
    match listed {
        Err(ReadError::Forbidden { .. }) if wanted.namespace.is_none() => Ok(None),
        listed => {
            let listed = listed.map_err(unread)?.into_iter();
            Ok(Some(listed.map(|(place, found)| (place, fact(found))).collect()))
        }
    }
}

/// What a pod's spec says, as policies see it, by the pod's UID.
pub fn pod_spec_fact(spec: PodSpec) -> (Uid, PodSpecFact) {
    let claim = |claim: PodClaim| PodClaimFact {
        name: claim.name,
        claim: claim.claim,
    };
    let volume = |volume: PodVolume| PodVolumeFact {
        name: volume.name,
        kind: volume.kind,
        claim: volume.claim,
    };
    let fact = PodSpecFact {
        requests: spec.requests,
        claims: spec.claims.into_iter().map(claim).collect(),
        volumes: spec.volumes.into_iter().map(volume).collect(),
        groups: spec.groups,
    };
    (Uid(spec.uid), fact)
}

fn peer_fact(peer: PeerPod) -> PeerFact {
    PeerFact {
        pod: peer.id,
        node: peer.node,
        phase: peer.phase,
        ready: peer.ready,
        deletion: peer.deletion,
        controller: peer.controller,
        groups: peer.groups,
    }
}

/// A ResourceClaim, as policies see it.
pub fn claim_fact(claim: ResourceClaim) -> ClaimFact {
    let device = |device: ClaimedDevice| (device_id(device.id), device.admin_access);
    let devices = claim.devices;
    ClaimFact {
        devices: devices.map(|devices| devices.into_iter().map(device).collect()),
    }
}

/// What DRA drivers publish, as policies see it.
pub fn device_attributes(
    published: BTreeMap<scupper_cluster::DeviceId, BTreeMap<String, String>>,
) -> DeviceAttributes {
    let device = |(id, attributes)| (device_id(id), attributes);
    published.into_iter().map(device).collect()
}

/// A PersistentVolumeClaim, as policies see it.
pub fn volume_claim_fact(claim: VolumeClaim) -> VolumeClaimFact {
    VolumeClaimFact {
        volume: claim.volume,
        storage_class: claim.storage_class,
        access_modes: claim.access_modes,
    }
}

/// A PersistentVolume that the node uses, as policies see it.
pub fn volume_fact(volume: PersistentVolume, node: &str) -> VolumeFact {
    VolumeFact {
        node_local: volume.is_local_to(node),
        kind: volume.kind,
    }
}

/// The nodes of each attached volume.
pub fn volume_attachments(listed: Vec<VolumeAttachment>) -> VolumeAttachments {
    let mut nodes = VolumeAttachments::new();
    for attachment in listed {
        nodes.entry(attachment.volume).or_default().push(attachment.node);
    }
    nodes
}

fn device_id(id: scupper_cluster::DeviceId) -> DeviceId {
    DeviceId {
        driver: id.driver,
        pool: id.pool,
        name: id.device,
    }
}

/// An owner of the kind of this reference, as policies see it.
pub fn owner_fact(like: &Controller, found: PodOwner) -> OwnerFact {
    OwnerFact {
        reference: Controller {
            name: found.meta.name.clone(),
            uid: Uid(found.meta.uid.clone()),
            ..like.clone()
        },
        marks: marks(found.meta),
        replicas: found.replicas,
        ready_replicas: found.ready_replicas,
        strategy: found.strategy,
        controller: found.controller,
    }
}

/// A namespace, as policies see it.
pub fn namespace_fact(found: ObjectMeta) -> NamespaceFact {
    NamespaceFact {
        deletion: found.deletion,
        marks: marks(found),
    }
}

fn marks(found: ObjectMeta) -> Marks {
    Marks {
        labels: found.labels,
        annotations: found.annotations,
    }
}

/// Also a missing right: the API server refuses all requests for a moment after a restart.
fn unread(error: ReadError) -> AccessError {
    AccessError::Unavailable(error.to_string())
}
