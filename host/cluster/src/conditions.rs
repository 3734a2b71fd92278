//! Conditions of the node that report the state of its drain.

use scupper_api::NodeCondition;
use scupper_engine::Condition;
use serde_json::{Value, json};

use super::node::WireNode;
use super::transport::escaped;
use super::wire::seconds;
use super::write::Merge;
use super::{Cluster, ReadError, WriteError};

impl Cluster {
    /// Sets conditions of the node in one write. Other conditions stay as they are.
    pub async fn set_node_conditions(
        &self,
        node: &str,
        conditions: &[NodeCondition],
    ) -> Result<(), WriteError> {
        let what = format!("set conditions of node {node}");
        let seen = self
            .conditions_before(node)
            .await
            .map_err(|error| unreadable(&what, error))?;
        let now = seconds(self.now());
        let conditions: Vec<_> = conditions
            .iter()
            .map(|condition| to_wire(condition, &seen, &now))
            .collect();
        let patch = json!({"status": {"conditions": conditions}});
        let path = format!("/api/v1/nodes/{}/status", escaped(node));
        let written = self.patch::<WireNode>(&path, Merge::Strategic, &patch).await;
        let written = written.map_err(|fault| fault.write(&what))?;
        self.to_node(written, &mut None);
        Ok(())
    }

    /// The conditions from the watch or the last write, else from the server.
    async fn conditions_before(&self, node: &str) -> Result<Vec<Condition>, ReadError> {
        match self.seen_conditions(node) {
            Some(conditions) => Ok(conditions),
            None => Ok(self
                .node(node)
                .await?
                .map(|node| node.conditions)
                .unwrap_or_default()),
        }
    }
}

/// Converts to the wire form. The transition time changes only with the status.
fn to_wire(condition: &NodeCondition, seen: &[Condition], now: &str) -> Value {
    let mut wire = json!({
        "type": condition.kind,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": now,
    });
    let same = seen
        .iter()
        .any(|other| other.kind == condition.kind && other.status == condition.status);
    if let (false, Some(wire)) = (same, wire.as_object_mut()) {
        wire.insert("lastTransitionTime".to_owned(), json!(now));
    }
    wire
}

fn unreadable(what: &str, error: ReadError) -> WriteError {
    let what = what.to_owned();
    let message = error.to_string();
    match error {
        ReadError::Unavailable { .. } | ReadError::Unexpected { .. } => {
            WriteError::Unavailable { what, message }
        }
        ReadError::NotFound { .. } => WriteError::Rejected {
            what,
            code: 404,
            message,
        },
        ReadError::Unauthorized { .. } => WriteError::Rejected {
            what,
            code: 401,
            message,
        },
        ReadError::Forbidden { .. } | ReadError::NotSaved { .. } => WriteError::Rejected {
            what,
            code: 403,
            message,
        },
    }
}
