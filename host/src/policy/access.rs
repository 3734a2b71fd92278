//! What a policy may do to the cluster through its imports. Whoever composes the driver implements it; the policy edge
//! has checked the grant before it asks.

use futures::future::BoxFuture;
use scupper_engine::{Node, Pod, PodRef};
use thiserror::Error;

/// The part of the cluster that policies can reach.
pub trait ClusterAccess: Send + Sync {
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
}

/// Why the cluster could not be asked.
#[derive(Debug, Error)]
pub enum AccessError {
    /// There is no such object, or it has another UID now.
    #[error("not found: {0}")]
    NotFound(String),
    /// The API server refused or could not be reached.
    #[error("the cluster is unavailable: {0}")]
    Unavailable(String),
}
