//! Whether the caller may drain a machine that is off. Such a drain runs in a terminal with the rights of its user: the
//! node's driver is gone, and drivers may write no taint.

use super::Finding;
use crate::CommandError;
use scupper_cluster::{Cluster, Right, needed_for_node_is_off};

const SUBJECT: &str = "machine off";

/// What the caller may do to this node, or to any if the name is empty.
pub(super) async fn of_caller(cluster: &Cluster, node: &str) -> Result<Finding, CommandError> {
    let missing = cluster.missing_rights(needed_for_node_is_off(), node).await;
    Ok(found(&missing.map_err(CommandError::Rights)?))
}

pub(super) fn found(missing: &[Right]) -> Finding {
    let place = |right: &Right| match right.namespace.as_str() {
        "" => right.name(),
        namespace => format!("{} in {namespace}", right.name()),
    };
    let names: Vec<_> = missing.iter().map(place).collect();
    if names.is_empty() {
        let text = "the caller has the rights that `scupper drain --node-is-off` needs: get and patch nodes, delete \
                    pods, get leases.coordination.k8s.io in kube-node-lease";
        return Finding::fine(SUBJECT, text.to_owned());
    }
    Finding::note(
        SUBJECT,
        format!(
            "the caller has no right to {}, which `scupper drain --node-is-off` needs from its user",
            names.join(", ")
        ),
        "grant it to the users who may say that a machine is off; drivers do not need it, and may write no taint".to_owned(),
    )
}
