//! Conditions of a node that the driver writes.

/// One condition to set on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCondition {
    /// `type`, such as `DrainInProgress`.
    pub kind: &'static str,
    /// `True` or `False`.
    pub status: &'static str,
    /// `reason`: one CamelCase word.
    pub reason: String,
    /// `message`, for people.
    pub message: String,
}
