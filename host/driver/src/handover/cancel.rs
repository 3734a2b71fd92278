//! `scupper cancel` stops a drain that has no LifecycleEvent by writing the drain's id into an annotation of the node.

use scupper_engine::Node;

/// The id of the drain that is to be cancelled.
pub const CANCEL_ANNOTATION: &str = "scupper.dev/cancel";

/// The node's annotation cancels the drain with this id.
pub(crate) fn is_cancelled(node: &Node, id: &str) -> bool {
    node.annotations
        .get(CANCEL_ANNOTATION)
        .is_some_and(|cancelled| cancelled == id)
}
