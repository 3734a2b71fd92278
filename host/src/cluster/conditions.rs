//! Conditions of the node that say where its drain stands.

/// One condition to set on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCondition {
    /// `type`, such as `DrainInProgress`
    pub kind: String,
    /// `True`, `False` or `Unknown`
    pub status: String,
    /// One CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
}
