//! Reads and annotates the policy's node and its pods. For hooks only: calls from a planner fail.

use std::fmt;

use crate::{Node, Pod, Uid, bindings::imports::scupper::drain::cluster as generated, host};

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No grant covers the call: the policy must want the grant and the operator must give it.
    NotGranted(String),
    /// No such pod.
    NotFound(String),
    /// The API server refused or could not be reached. Retry later.
    Unavailable(String),
}

/// The UID of the namespace `kube-system`, which identifies the cluster. Checks can call it as well.
pub fn uid() -> Result<Uid, Error> {
    Ok(host::cluster::get_cluster_uid()?)
}

/// The node as it is now.
pub fn get_node() -> Result<Node, Error> {
    Ok(host::cluster::get_node()?)
}

/// The node's pods as they are now.
pub fn list_pods() -> Result<Vec<Pod>, Error> {
    Ok(host::cluster::list_pods()?)
}

/// Sets one annotation of the node. Needs [`Grant::node_annotations`](crate::Grant::node_annotations).
///
/// A value has at most 32 KiB. All annotations of the node that the policy may set have at most 64 KiB together.
pub fn annotate_node(key: &str, value: &str) -> Result<(), Error> {
    Ok(host::cluster::set_node_annotation(key, value)?)
}

/// Removes one annotation of the node. Needs [`Grant::node_annotations`](crate::Grant::node_annotations).
pub fn remove_node_annotation(key: &str) -> Result<(), Error> {
    Ok(host::cluster::remove_node_annotation(key)?)
}

/// Sets one annotation of a pod. Needs [`Grant::pod_annotations`](crate::Grant::pod_annotations).
pub fn annotate_pod(pod: &Pod, key: &str, value: &str) -> Result<(), Error> {
    Ok(host::cluster::set_pod_annotation(&pod.uid, key, value)?)
}

/// Removes one annotation of a pod. Needs [`Grant::pod_annotations`](crate::Grant::pod_annotations).
pub fn remove_pod_annotation(pod: &Pod, key: &str) -> Result<(), Error> {
    Ok(host::cluster::remove_pod_annotation(&pod.uid, key)?)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(message) => write!(f, "not granted: {message}"),
            Self::NotFound(message) => write!(f, "not found: {message}"),
            Self::Unavailable(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<generated::Error> for Error {
    fn from(error: generated::Error) -> Self {
        match error {
            generated::Error::NotGranted(message) => Self::NotGranted(message),
            generated::Error::NotFound(message) => Self::NotFound(message),
            generated::Error::Unavailable(message) => Self::Unavailable(message),
        }
    }
}
