//! DrainRequests: watched, and answered by conditions in their status.
//!
//! Their CRD comes from others, so every field is read by hand: a field of the wrong type is a problem of one request,
//! never the end of the watch. A write reads the object first, keeps the conditions of other writers as they are, and
//! names the version that was read.

mod conditions;
mod fields;
mod lean_meta;
mod node_requests;
mod wire;

use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt as _};
use scupper_api::{Change, DrainRequestFields, DrainRequestRef, RequestCondition};
use scupper_engine::{Condition, NamedPods, Time};
use serde::de::IgnoredAny;
use serde_json::json;

use super::listing::{Source, WatchBreak, list_through};
use super::sieve::Sieve;
use super::transport::{Fault, escaped};
use super::watch::watch_through;
use super::wire::{MetaOnly, Page};
use super::write::Merge;
use super::{Cluster, ReadError, WriteError};
use conditions::WithConditions;
use node_requests::NodeRequests;

pub(super) use wire::WireRequest;

/// Where the API serves DrainRequests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequestResource {
    /// The API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The resource's plural name.
    pub plural: String,
}

/// A request as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequestObject {
    /// Which one.
    pub reference: DrainRequestRef,
    /// `metadata.creationTimestamp`
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The node that it names: `spec.nodeName`, or the label of node-drainer if that is unusable.
    pub node: String,
    /// Why it cannot be served, if it cannot.
    pub problem: Option<String>,
    /// `spec.podsToDrain`; an error if it is not a map of namespaces to lists of names.
    pub pods: Result<NamedPods, String>,
    /// `status.conditions`, those that are readable.
    pub conditions: Vec<Condition>,
    /// What policies may ask about.
    pub fields: Arc<DrainRequestFields>,
}

/// Keeps the requests of all nodes, each within its bounds.
struct AnyNode;

impl Sieve<WireRequest> for AnyNode {
    fn keeps(&mut self, _request: &mut WireRequest) -> bool {
        true
    }
}

impl DrainRequestResource {
    /// `drainrequests.nvsentinel.nvidia.com`
    pub fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    fn path(&self, namespace: &str, name: Option<&str>) -> String {
        let (group, version) = (escaped(&self.group), escaped(&self.version));
        let (namespace, plural) = (escaped(namespace), escaped(&self.plural));
        let name = name.map(|name| format!("/{}", escaped(name))).unwrap_or_default();
        format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}{name}")
    }
}

impl Cluster {
    /// Streams the requests of a namespace that name the node. Never ends.
    pub fn drain_requests(
        &self,
        kind: &DrainRequestResource,
        namespace: &str,
        node: &str,
    ) -> BoxStream<'static, Change<DrainRequestObject>> {
        let source = Source {
            path: kind.path(namespace, None),
            selector: Some(format!("fieldSelector=spec.nodeName={}", escaped(node))),
            optional: false,
        };
        // A CRD without selectable fields cannot select by this one.
        watch_through(self, source, NodeRequests::new(node), WireRequest::into_request).boxed()
    }

    /// Whether the API server can select requests by the node that they name.
    pub async fn selects_drain_requests(
        &self,
        kind: &DrainRequestResource,
        namespace: &str,
    ) -> Result<bool, ReadError> {
        let path = kind.path(namespace, None);
        let query = format!("{path}?limit=1&fieldSelector=spec.nodeName=none");
        match self.get::<Page<MetaOnly>>(&query).await {
            Ok(_) => Ok(true),
            Err(Fault::Refused(_, status))
                if matches!(WatchBreak::from_status(&status), WatchBreak::NoSuchField) =>
            {
                Ok(false)
            }
            Err(fault) => Err(fault.read(&format!("list {}", kind.plural))),
        }
    }

    /// Reads all requests of a namespace.
    pub async fn list_drain_requests(
        &self,
        kind: &DrainRequestResource,
        namespace: &str,
    ) -> Result<Vec<DrainRequestObject>, ReadError> {
        let source = Source::all(kind.path(namespace, None));
        let listed = list_through(self.client(), &source, self.options(), &mut AnyNode).await;
        let (listed, _) = listed.map_err(|fault| fault.read(&format!("list {}", kind.plural)))?;
        Ok(listed.into_iter().map(WireRequest::into_request).collect())
    }

    /// Whether the API server serves these requests.
    pub async fn serves_drain_requests(&self, kind: &DrainRequestResource) -> Result<bool, ReadError> {
        let path = format!("/apis/{}/{}", escaped(&kind.group), escaped(&kind.version));
        let resources = self.resources_at(&path).await;
        let what = format!("discover {}/{}", kind.group, kind.version);
        let resources = resources.map_err(|fault| fault.read(&what))?;
        Ok(resources.contains(&kind.plural))
    }

    /// Sets conditions of a request; those of others stay. Nothing is written, and `false` returned, if they are so
    /// already.
    pub async fn set_drain_request_conditions(
        &self,
        kind: &DrainRequestResource,
        request: &DrainRequestRef,
        wanted: &[RequestCondition],
    ) -> Result<bool, WriteError> {
        let DrainRequestRef { namespace, name, uid } = request;
        let what = format!("set conditions of {} {namespace}/{name}", kind.plural);
        let path = kind.path(namespace, Some(name));
        let found = self.get::<WithConditions>(&path).await;
        let WithConditions { metadata, status } = found.map_err(|fault| fault.write(&what))?;
        if metadata.uid != *uid {
            let message = "another one has its name now".to_owned();
            return Err(WriteError::Rejected {
                what,
                code: 404,
                message,
            });
        }
        let Some(conditions) = conditions::merged(status.conditions, metadata.generation, wanted, self.now())
        else {
            return Ok(false);
        };
        let patch = json!({
            "metadata": {"uid": uid, "resourceVersion": metadata.resource_version},
            "status": {"conditions": conditions},
        });
        let patched = self
            .patch::<IgnoredAny>(&format!("{path}/status"), Merge::Json, &patch)
            .await;
        patched.map(|_| true).map_err(|fault| fault.write(&what))
    }
}

#[cfg(test)]
mod tests;
