//! The reason of our drains in Slurm. It shows people, monitors and this policy whose drain it is.
//!
//! `scupper: node=<node> cluster=<cluster> drain=<id>: <name>`, with ` down` after the id once the ladder has set the node
//! down, and at the end the former reason of a node that was down. Two clusters that share one Slurm may have nodes of the
//! same name, so only the cluster makes it ours. slurmctld appends to reasons, so only the beginning identifies the owner;
//! and a reason may outlive its drain, so the node must also be draining.

use scupper_sdk::mark::Mark;
use scupper_sdk::{Call, Node};

use super::node::SlurmNode;
use super::slurm_error::SlurmError;
use crate::reason::{CHARACTERS, one_line};
use crate::settings::Settings;

const DOWN: &str = " down";
const WAS_DOWN: &str = "; was down: ";
/// slurmctld appends this to the reason of a node that does not respond. With `ReturnToService=1` a node with this reason
/// alone comes back by itself.
pub(crate) const SILENT: &str = "Not responding";

/// The owner of a drain in Slurm: this Kubernetes node in this cluster, and this drain of it.
pub(crate) struct Owner {
    mark: Mark,
    name: String,
}

impl Owner {
    /// Asks which cluster this is, unless the configuration says it.
    pub(crate) fn of(call: &Call, settings: &Settings) -> Result<Self, SlurmError> {
        let cluster = settings.slurmrestd.cluster.as_deref();
        Ok(Self {
            mark: Mark::of_drain(call, cluster).map_err(SlurmError::NoCluster)?,
            name: call.drain.name.clone(),
        })
    }

    /// The reason of this drain for a node. It contains the former reason of a node that is down, for `after`.
    pub(crate) fn text(&self, more: Option<&str>, node: &SlurmNode) -> String {
        let mut text = self.mark.text().to_owned();
        let head = text.chars().count();
        text.push_str(": ");
        text.push_str(&self.name);
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

    /// Whether this drain has drained the node.
    pub(crate) fn has_drained(&self, node: &SlurmNode) -> bool {
        node.is_draining() && self.is_named_by(node)
    }

    /// Whether the node has the reason of this drain, drained or not.
    pub(crate) fn is_named_by(&self, node: &SlurmNode) -> bool {
        self.mark.is_of_drain(&node.reason)
    }

    /// Whether any drain of this Kubernetes node has drained it.
    pub(crate) fn node_has_drained(&self, node: &SlurmNode) -> bool {
        node.is_draining() && self.node_is_named_by(node)
    }

    /// Whether the node has the reason of any drain of this Kubernetes node, drained or not.
    pub(crate) fn node_is_named_by(&self, node: &SlurmNode) -> bool {
        self.mark.is_of_node(&node.reason)
    }

    /// Whether Scupper has drained it for another Kubernetes node, of this or another cluster.
    pub(crate) fn is_of_another(&self, node: &SlurmNode) -> bool {
        node.is_draining() && self.mark.is_of_another(&node.reason)
    }
}

/// Whether this Kubernetes node has drained it.
pub(crate) fn has_drained(
    kubernetes: &Node,
    settings: &Settings,
    node: &SlurmNode,
) -> Result<bool, SlurmError> {
    let cluster = settings.slurmrestd.cluster.as_deref();
    let mark = Mark::of_node(kubernetes, cluster).map_err(SlurmError::NoCluster)?;
    Ok(node.is_draining() && mark.is_of_node(&node.reason))
}

/// Whether the reason is that of a drain by Scupper, for any node.
pub(crate) fn is_of_scupper(node: &SlurmNode) -> bool {
    Mark::is_of_scupper(&node.reason)
}

/// The same reason, with the mark that the ladder has set the node down.
pub(crate) fn set_down(node: &SlurmNode) -> String {
    match id(node) {
        Some((head, id, rest)) if !id.ends_with(DOWN) => one_line(&format!("{head}{id}{DOWN}{rest}")),
        _ => node.reason.clone(),
    }
}

/// The reason after the undrain: the one that Slurm itself leaves on a node that was silent, as nothing but the start of a job
/// removes a reason, and with any other one a node that is DOWN stays so. A node that is still down gets back its former reason.
pub(crate) fn after(node: &SlurmNode) -> &str {
    let is_revived = records_down(node) && !node.has("NOT_RESPONDING");
    match former(node) {
        Some(former) if node.has("DOWN") && !is_revived && !former.starts_with(SILENT) => former,
        _ => SILENT,
    }
}

/// Whether the reason says that a ladder has set the node down.
pub(crate) fn records_down(node: &SlurmNode) -> bool {
    id(node).is_some_and(|(_, id, _)| id.ends_with(DOWN))
}

/// Whether the node was down when we drained it, and not because it was silent: a machine that was off may boot.
pub(crate) fn was_down(node: &SlurmNode) -> bool {
    is_of_scupper(node) && former(node).is_some_and(|former| !former.starts_with(SILENT))
}

/// The reason for which a node is down, or was down when we drained it.
fn former(node: &SlurmNode) -> Option<&str> {
    if is_of_scupper(node) {
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
