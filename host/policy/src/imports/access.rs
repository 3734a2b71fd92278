//! The actions on the cluster that a policy can request through its imports. `driver` implements them; the policy edge
//! checks the grant before each call.

use futures::future::BoxFuture;
use scupper_api::facts::{FactObject, FactQuery};
use scupper_engine::{Node, Pod, PodRef, Uid};
use thiserror::Error;

/// The part of the cluster that policies can reach.
pub trait ClusterAccess: Send + Sync {
    /// The objects of a query. It may send requests; nothing is remembered here.
    fn ask<'a>(&'a self, query: &'a FactQuery) -> BoxFuture<'a, Result<Vec<FactObject>, FactError>>;

    /// The UID of the namespace `kube-system`, which identifies the cluster.
    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>>;

    /// The node as it is now.
    fn node<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>>;

    /// The node's pods as they are now.
    fn pods<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>>;

    /// Sets an annotation of the node, or removes it (`None`).
    fn annotate_node<'a>(
        &'a self,
        node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>>;

    /// Sets an annotation of the pod with exactly this UID, or removes it (`None`).
    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>>;

    /// Emits a Kubernetes Event.
    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>>;

    /// The value of a key of a Kubernetes Secret.
    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>>;
}

/// A Kubernetes Event emitted by a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyEvent<'a> {
    /// The policy.
    pub policy: &'a str,
    /// The policy's node.
    pub node: &'a str,
    /// The pod it is about; `None`: the node.
    pub pod: Option<&'a PodRef>,
    /// The Event is a warning.
    pub warning: bool,
    /// One word in CamelCase.
    pub reason: &'a str,
    /// One line.
    pub note: &'a str,
}

/// Why a request to the cluster failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AccessError {
    /// There is no such object, or it has another UID now.
    #[error("not found: {0}")]
    NotFound(String),
    /// The API server refused or could not be reached.
    #[error("the cluster is unavailable: {0}")]
    Unavailable(String),
}

/// Why a query has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FactError {
    /// There is no such object.
    #[error("not found: {0}")]
    NotFound(String),
    /// There is no right to read the objects.
    #[error("{0}")]
    Forbidden(String),
    /// The API server refused or could not be reached.
    #[error("{0}")]
    Unavailable(String),
}
