//! The reason that a drain of ours has in Slurm. By it a person, a monitor and this policy know whose drain it is.
//!
//! `scupper: node=<node> drain=<id>: <name>`, and ` down` behind the id once the ladder has set the node down. The
//! controller appends to reasons, so only how one begins tells whose it is; and a reason outlives its drain, so the
//! node must be draining, too.

use scupper_sdk::Call;

use super::node::SlurmNode;
use crate::reason::one_line;

const DOWN: &str = " down";

/// The reason of this drain.
pub(crate) fn text(call: &Call, more: Option<&str>, down: bool) -> String {
    let mut text = this_drain(call);
    text.push_str(if down { DOWN } else { "" });
    text.push_str(": ");
    text.push_str(&call.drain.name);
    if let Some(more) = more {
        text.push_str(": ");
        text.push_str(more);
    }
    one_line(&text)
}

/// It is drained, and by this very drain.
pub(crate) fn is_of_this_drain(call: &Call, node: &SlurmNode) -> bool {
    let head = one_line(&this_drain(call));
    let rest = node.reason.strip_prefix(&head);
    node.is_draining() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
}

/// It is drained by a drain of this Kubernetes node, whichever.
pub(crate) fn is_of_this_node(call: &Call, node: &SlurmNode) -> bool {
    node.is_draining() && node.reason.starts_with(&one_line(&this_node(call)))
}

/// The ladder of this drain, or of the drain the reason names, has set it down.
pub(crate) fn says_down(node: &SlurmNode) -> bool {
    let named = node.reason.split_once(" drain=").map(|(_, rest)| rest);
    let id = named.and_then(|rest| rest.split_once(':')).map(|(id, _)| id);
    id.is_some_and(|id| id.ends_with(DOWN))
}

fn this_node(call: &Call) -> String {
    format!("scupper: node={} drain=", call.node.name)
}

fn this_drain(call: &Call) -> String {
    this_node(call) + &call.drain.id
}
