//! Leases (`coordination.k8s.io/v1`): every write names the version on which its decision was based. It must not know
//! what a lease means, nor when it expires.

use std::time::Duration;

use scupper_engine::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::listing::Source;
use super::transport::{Fault, escaped};
use super::wire::{Meta, micros, moment, nullable};
use super::write::Merge;
use super::{Cluster, ReadError, WriteError};

/// The default namespace of the leases: that in which the driver is installed.
pub const LEASE_NAMESPACE: &str = "scupper";

/// Which drain its holder carries out, on the lease of a node.
const DRAIN_ANNOTATION: &str = "scupper.dev/drain";

/// One version of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `spec.holderIdentity`; empty if it has no holder.
    pub holder: String,
    /// `spec.leaseDurationSeconds`
    pub length: Duration,
    /// `spec.renewTime`, by the holder's clock.
    pub renewed: Option<Time>,
    /// `metadata.resourceVersion`
    pub version: String,
    /// What its holder wrote about its drain; empty if nothing.
    pub drain: String,
    uid: String,
    transitions: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireLease {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    holder_identity: String,
    lease_duration_seconds: Option<u32>,
    #[serde(deserialize_with = "moment")]
    renew_time: Option<Time>,
    #[serde(deserialize_with = "nullable")]
    lease_transitions: i64,
}

impl Cluster {
    /// Reads the lease of this name, if it exists.
    pub async fn lease(&self, namespace: &str, name: &str) -> Result<Option<Lease>, ReadError> {
        let found = self.find_lease(namespace, name).await;
        found.map_err(|fault| fault.read(&format!("get lease {namespace}/{name}")))
    }

    pub(super) async fn find_lease(&self, namespace: &str, name: &str) -> Result<Option<Lease>, Fault> {
        match self.get::<WireLease>(&path(namespace, Some(name))).await {
            Ok(found) => Ok(Some(found.into_lease())),
            Err(fault) if fault.is_not_found() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Reads the leases of a namespace.
    pub async fn leases(&self, namespace: &str) -> Result<Vec<Lease>, ReadError> {
        let source = Source::all(path(namespace, None));
        let listed = self.read_list::<WireLease>(&source, "list leases").await?;
        Ok(listed.into_iter().map(WireLease::into_lease).collect())
    }

    /// Creates a lease for a holder, with what it says about its drain. An existing one is a conflict.
    pub async fn make_lease(
        &self,
        namespace: &str,
        name: &str,
        (holder, drain): (&str, &str),
        length: Duration,
    ) -> Result<Lease, WriteError> {
        let now = micros(self.now());
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace, "annotations": {DRAIN_ANNOTATION: drain}},
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": length.as_secs(),
                "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
            },
        });
        let made = self.create::<WireLease>(&path(namespace, None), &lease).await;
        let what = format!("create lease {namespace}/{name}");
        Ok(made.map_err(|fault| fault.write(&what))?.into_lease())
    }

    /// Sets the holder of a lease that has not changed since it was read, and what it says about its drain.
    pub async fn take_lease(
        &self,
        seen: &Lease,
        (holder, drain): (&str, &str),
        length: Duration,
    ) -> Result<Lease, WriteError> {
        let now = micros(self.now());
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": length.as_secs(), "acquireTime": now,
            "renewTime": now, "leaseTransitions": seen.transitions.saturating_add(1),
        });
        self.write_lease(seen, &spec, Some(drain), "take").await
    }

    /// Renews the lease for its holder.
    pub async fn renew_lease(&self, seen: &Lease) -> Result<Lease, WriteError> {
        let spec = json!({ "renewTime": micros(self.now()) });
        self.write_lease(seen, &spec, None, "renew").await
    }

    async fn write_lease(
        &self,
        seen: &Lease,
        spec: &Value,
        drain: Option<&str>,
        verb: &str,
    ) -> Result<Lease, WriteError> {
        // Without a drain it stays as it is: a merge patch leaves out what it does not change.
        let annotations = drain.map_or_else(|| json!({}), |drain| json!({ DRAIN_ANNOTATION: drain }));
        let patch = json!({
            "metadata": {"uid": seen.uid, "resourceVersion": seen.version, "annotations": annotations},
            "spec": spec,
        });
        let path = path(&seen.namespace, Some(&seen.name));
        let written = self.patch::<WireLease>(&path, Merge::Json, &patch).await;
        let what = format!("{verb} lease {}/{}", seen.namespace, seen.name);
        match written {
            Ok(written) => Ok(written.into_lease()),
            Err(fault) if fault.is_of_another_uid() => Err(WriteError::Conflict {
                message: "there is another one of this name now".to_owned(),
                what,
            }),
            Err(fault) => Err(fault.write(&what)),
        }
    }

    /// Takes the holder from a lease that has not changed since it was read, and sets what stays known of its drain.
    pub async fn release_lease(&self, seen: &Lease, drain: &str) -> Result<(), WriteError> {
        let spec = json!({ "holderIdentity": null });
        let released = self.write_lease(seen, &spec, Some(drain), "release").await;
        released.map(|_| ())
    }

    /// Deletes a lease that has not changed since it was read.
    pub async fn drop_lease(&self, seen: &Lease) -> Result<(), WriteError> {
        let path = path(&seen.namespace, Some(&seen.name));
        let what = format!("lease {}/{}", seen.namespace, seen.name);
        let preconditions = json!({ "uid": seen.uid, "resourceVersion": seen.version });
        self.delete_if(&path, preconditions, &what).await
    }
}

fn path(namespace: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!("/{}", escaped(name))).unwrap_or_default();
    format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases{name}",
        escaped(namespace)
    )
}

impl WireLease {
    pub(super) fn into_lease(self) -> Lease {
        let Self {
            metadata: mut meta,
            spec,
        } = self;
        Lease {
            drain: meta.annotations.remove(DRAIN_ANNOTATION).unwrap_or_default(),
            namespace: meta.namespace,
            name: meta.name,
            holder: spec.holder_identity,
            length: Duration::from_secs(u64::from(spec.lease_duration_seconds.unwrap_or_default())),
            renewed: spec.renew_time,
            version: meta.resource_version,
            uid: meta.uid,
            transitions: spec.lease_transitions,
        }
    }
}
