//! For policies that run without a cluster: in dry runs, benchmarks and tests.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::DrainRequestFields;
use scupper_engine::{Controller, Node, Pod, PodRef, Uid};

use crate::{
    AccessError, BudgetFact, ClaimFact, ClusterAccess, DeviceAttributes, FactSource, Listed, Marks,
    NamespaceFact, OwnerFact, PeerFact, PodSpecFact, PolicyEvent, VolumeAttachments, VolumeClaimFact,
    VolumeFact, Wanted, WantedPeers,
};

/// A cluster that is never available; it says why.
#[derive(Clone, Copy, Debug)]
pub struct NoCluster(pub &'static str);

impl NoCluster {
    fn refuse<'a, T: Send + 'a>(self) -> BoxFuture<'a, Result<T, AccessError>> {
        ready(Err(AccessError::Unavailable(self.0.to_owned()))).boxed()
    }
}

impl ClusterAccess for NoCluster {
    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        self.refuse()
    }

    fn node<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.refuse()
    }

    fn pods<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.refuse()
    }

    fn annotate_node<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.refuse()
    }

    fn annotate_pod<'a>(
        &'a self,
        _: &'a PodRef,
        _: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.refuse()
    }

    fn secret<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        self.refuse()
    }

    fn emit<'a>(&'a self, _: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        self.refuse()
    }
}

impl FactSource for NoCluster {
    fn lifecycle_event<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Marks, AccessError>> {
        self.refuse()
    }

    fn drain_requests<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Arc<DrainRequestFields>>, AccessError>> {
        self.refuse()
    }

    fn namespace<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>> {
        self.refuse()
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>> {
        self.refuse()
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>> {
        self.refuse()
    }

    fn owner<'a>(
        &'a self,
        _: &'a str,
        _: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>> {
        self.refuse()
    }

    fn owners<'a>(&'a self, _: &'a Wanted, _: &'a Controller) -> Listed<'a, OwnerFact> {
        self.refuse()
    }

    fn pod_specs<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<BTreeMap<Uid, PodSpecFact>, AccessError>> {
        self.refuse()
    }

    fn resource_claim<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<ClaimFact>, AccessError>> {
        self.refuse()
    }

    fn resource_claims<'a>(&'a self, _: &'a Wanted) -> Listed<'a, ClaimFact> {
        self.refuse()
    }

    fn device_attributes<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<DeviceAttributes, AccessError>> {
        self.refuse()
    }

    fn volume_claim<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeClaimFact>, AccessError>> {
        self.refuse()
    }

    fn volume_claims<'a>(&'a self, _: &'a Wanted) -> Listed<'a, VolumeClaimFact> {
        self.refuse()
    }

    fn persistent_volume<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<VolumeFact>, AccessError>> {
        self.refuse()
    }

    fn persistent_volumes<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, VolumeFact>, AccessError>> {
        self.refuse()
    }

    fn volume_attachments(&self) -> BoxFuture<'_, Result<VolumeAttachments, AccessError>> {
        self.refuse()
    }

    fn peers<'a>(&'a self, _: &'a WantedPeers) -> BoxFuture<'a, Result<Vec<PeerFact>, AccessError>> {
        self.refuse()
    }
}
