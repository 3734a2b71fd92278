//! How long a drain waits for the node's volumes after its last pod.

use scupper_engine::VolumeWait;

use super::table::DAY_MS;
use crate::document::Node;
use crate::shape::{Field, Object, Shape};

pub(super) static WAIT_FOR_VOLUMES: Object = Object {
    fields: &[
        Field::required(
            "at-most",
            Shape::Duration {
                least_ms: 1_000,
                most_ms: DAY_MS,
            },
            "The longest wait. It also ends 10 seconds before the drain's deadline.",
        ),
        Field::new(
            "otherwise",
            Shape::OneOf(&["warn", "fail"]),
            "What follows if volumes are still attached then: warn ends the drain as Drained and names them, fail ends it \
             as Failed. Default warn.",
        ),
    ],
    one_of: &[],
};

/// The engine's settings.
pub(super) fn read(node: &Node) -> Option<VolumeWait> {
    Some(VolumeWait {
        at_most: node.get("at-most").and_then(Node::duration)?,
        or_fail: node.get("otherwise").and_then(Node::text) == Some("fail"),
    })
}
