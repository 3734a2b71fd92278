//! Kubernetes Events about the node, as `kubectl describe node` shows them.

use scupper_engine::Uid;

/// Whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// A Kubernetes Event about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesEvent {
    /// The node it is about.
    pub node: String,
    /// The node's UID, when it is known.
    pub node_uid: Option<Uid>,
    /// Normal or Warning.
    pub severity: Severity,
    /// One CamelCase word: why.
    pub reason: String,
    /// One CamelCase word: what was done.
    pub action: String,
    /// For people; cut after 1024 bytes.
    pub note: String,
}
