//! The reason of our drains in Slurm. It shows people, monitors and this policy whose drain it is.
//!
//! `scupper: node=<node> drain=<id>: <name>`, with ` down` after the id once the ladder has set the node down, and at the end
//! the former reason of a node that was down. slurmctld appends to reasons, so only the beginning identifies the owner; and a
//! reason outlives its drain, so the node must also be draining.

use scupper_sdk::Call;

use super::node::SlurmNode;
use crate::reason::{CHARACTERS, one_line};

const OURS: &str = "scupper: node=";
const DOWN: &str = " down";
const WAS_DOWN: &str = "; was down: ";
/// slurmctld appends this to the reason of a node that does not respond. With `ReturnToService=1` a node with this reason
/// alone comes back by itself.
const SILENT: &str = "Not responding";

/// The reason of this drain for a node. It contains the former reason of a node that is down, for `after`.
pub(crate) fn text(call: &Call, more: Option<&str>, node: &SlurmNode) -> String {
    let mut text = this_drain(call);
    let head = text.chars().count();
    text.push_str(": ");
    text.push_str(&call.drain.name);
    if let Some(more) = more {
        text.push_str(": ");
        text.push_str(more);
    }
    let Some(former) = former(node) else {
        return one_line(&text);
    };
    let tail = format!("{WAS_DOWN}{former}");
    match CHARACTERS.checked_sub(tail.chars().count()) {
        Some(room) if room >= head => {
            one_line(&text).chars().take(room).collect::<String>() + &one_line(&tail)
        }
        _ => one_line(&text),
    }
}

/// The same reason, with the mark that the ladder has set the node down.
pub(crate) fn set_down(node: &SlurmNode) -> String {
    match id(node) {
        Some((head, id, rest)) if !id.ends_with(DOWN) => one_line(&format!("{head}{id}{DOWN}{rest}")),
        _ => node.reason.clone(),
    }
}

/// The reason after the undrain. It is never one of our drains', because a drain without a reason inherits it. A node that
/// is still down gets back its former reason.
pub(crate) fn after(call: &Call, node: &SlurmNode) -> String {
    if node.has("DOWN") && !records_down(node) {
        match former(node) {
            Some(former) if !former.starts_with(SILENT) => return former.to_owned(),
            None if !node.reason.ends_with(SILENT) => {}
            _ => return SILENT.to_owned(),
        }
    }
    one_line(&format!("undrained by scupper: {}", call.drain.name))
}

/// Whether this drain has drained the node.
pub(crate) fn is_of_this_drain(call: &Call, node: &SlurmNode) -> bool {
    node.is_draining() && names_this_drain(call, node)
}

/// Whether the node has the reason of this drain, drained or not.
pub(crate) fn names_this_drain(call: &Call, node: &SlurmNode) -> bool {
    let head = one_line(&this_drain(call));
    let rest = node.reason.strip_prefix(&head);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
}

/// Whether any drain of this Kubernetes node has drained it.
pub(crate) fn is_of_this_node(call: &Call, node: &SlurmNode) -> bool {
    node.is_draining() && names_this_node(call, node)
}

/// Whether the node has the reason of any drain of this Kubernetes node, drained or not.
pub(crate) fn names_this_node(call: &Call, node: &SlurmNode) -> bool {
    node.reason.starts_with(&one_line(&this_node(call)))
}

/// Whether the reason says that a ladder has set the node down.
pub(crate) fn records_down(node: &SlurmNode) -> bool {
    id(node).is_some_and(|(_, id, _)| id.ends_with(DOWN))
}

/// The reason for which a node is down, or was down when we drained it.
fn former(node: &SlurmNode) -> Option<&str> {
    if node.reason.starts_with(OURS) {
        return node.reason.split_once(WAS_DOWN).map(|(_, former)| former);
    }
    let reason = node.reason.trim();
    (node.has("DOWN") && !reason.is_empty()).then_some(reason)
}

/// Our reason in three parts: the text before the drain's id, the id, and the rest.
fn id(node: &SlurmNode) -> Option<(&str, &str, &str)> {
    const KEY: &str = " drain=";
    let begin = node.reason.find(KEY)?.checked_add(KEY.len())?;
    let (head, rest) = node.reason.split_at_checked(begin)?;
    let (id, rest) = rest.split_at_checked(rest.find(':')?)?;
    Some((head, id, rest))
}

fn this_node(call: &Call) -> String {
    format!("{OURS}{} drain=", call.node.name)
}

fn this_drain(call: &Call) -> String {
    this_node(call) + &call.drain.id
}
