//! The taint `node.kubernetes.io/out-of-service`: because of it the controllers delete the pods of a node whose kubelet
//! is gone, and detach its volumes. An annotation beside it names the drain of Scupper that set it.
//!
//! Each write names the version of the node that was read, so it fails if the kubelet posts its status in between; the
//! kubelet's Lease is read last.

use scupper_engine::{Node, Uid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::kubelet::{KubeletSilence, KubeletState, SignOfLife, lease_text};
use super::node::Status;
use super::transport::escaped;
use super::wire::{Meta, nullable};
use super::write::Merge;
use super::{Cluster, WriteError};

/// The taint's key.
pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";

/// The taint as `kubectl taint` writes it.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
const VALUE: &str = "nodeshutdown";
const EFFECT: &str = "NoExecute";

/// The result of a request to mark a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutOfService {
    /// The node has the taint of this drain.
    Marked,
    /// The node already had the taint, from another drain or another client.
    Found,
    /// Nothing has changed: the node is not cordoned.
    Uncordoned,
    /// Nothing has changed: the node's kubelet gives a sign of life.
    Alive(SignOfLife),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireNode {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    unschedulable: bool,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<Value>,
}

impl Cluster {
    /// Taints the node with this UID, if its kubelet is silent and it is cordoned. `before`: the kubelet as it was silent
    /// earlier.
    pub async fn mark_out_of_service(
        &self,
        node: &str,
        uid: &Uid,
        drain: &str,
        before: Option<&KubeletSilence>,
    ) -> Result<OutOfService, WriteError> {
        let what = format!("taint node {node} as out of service");
        let found = self.read_with_taints(node, &what).await?;
        if found.metadata.uid != uid.as_str() {
            return Err(WriteError::Conflict {
                what,
                message: "another node has its name".to_owned(),
            });
        }
        let kubelet = self.kubelet_of(node, &found.status.conditions, before).await;
        match kubelet.map_err(|fault| fault.write(&lease_text(node)))? {
            KubeletState::Alive(sign) => return Ok(OutOfService::Alive(sign)),
            KubeletState::Silent(_) => {}
        }
        if !found.spec.unschedulable {
            return Ok(OutOfService::Uncordoned);
        }
        let mut taints = found.spec.taints;
        if taints.iter().any(is_out_of_service) {
            // The answer to an earlier write may have been lost.
            let mark = found.metadata.annotations.get(Node::OUT_OF_SERVICE);
            let is_own = mark.is_some_and(|mark| mark == drain) && taints.iter().any(is_scuppers);
            return Ok(if is_own {
                OutOfService::Marked
            } else {
                OutOfService::Found
            });
        }
        taints.push(json!({"key": OUT_OF_SERVICE_TAINT, "value": VALUE, "effect": EFFECT}));
        self.write_taints(node, &found.metadata, taints, json!(drain), &what)
            .await?;
        Ok(OutOfService::Marked)
    }

    /// Removes the taint if our annotation stands beside it; with `drain` only if it names this drain. Returns whether
    /// it has removed the taint.
    pub async fn unmark_out_of_service(&self, node: &str, drain: Option<&str>) -> Result<bool, WriteError> {
        let what = format!("remove the taint {OUT_OF_SERVICE_TAINT} from node {node}");
        let mut found = self.read_with_taints(node, &what).await?;
        let mark = found.metadata.annotations.remove(Node::OUT_OF_SERVICE);
        let is_meant = |mark: &String| drain.is_none_or(|drain| drain == mark);
        if !mark.as_ref().is_some_and(is_meant) {
            return Ok(false);
        }
        let mut taints = found.spec.taints;
        let all = taints.len();
        taints.retain(|taint| !is_scuppers(taint));
        let is_removed = taints.len() < all;
        self.write_taints(node, &found.metadata, taints, Value::Null, &what)
            .await?;
        Ok(is_removed)
    }

    async fn read_with_taints(&self, node: &str, what: &str) -> Result<WireNode, WriteError> {
        let path = format!("/api/v1/nodes/{}", escaped(node));
        self.get(&path).await.map_err(|fault| fault.write(what))
    }

    async fn write_taints(
        &self,
        node: &str,
        read: &Meta,
        taints: Vec<Value>,
        mark: Value,
        what: &str,
    ) -> Result<(), WriteError> {
        let patch = json!({
            "metadata": {
                "uid": read.uid,
                "resourceVersion": read.resource_version,
                "annotations": {Node::OUT_OF_SERVICE: mark},
            },
            "spec": {"taints": taints},
        });
        let path = format!("/api/v1/nodes/{}", escaped(node));
        let written = self.patch::<Value>(&path, Merge::Json, &patch).await;
        written.map(drop).map_err(|fault| fault.write(what))
    }
}

/// The taint as Scupper sets it: another client may have replaced it by another one of this key, or have added one.
fn is_scuppers(taint: &Value) -> bool {
    let has = |field: &str, text: &str| taint.get(field).and_then(Value::as_str) == Some(text);
    is_out_of_service(taint) && has("value", VALUE) && has("effect", EFFECT)
}

fn is_out_of_service(taint: &Value) -> bool {
    taint.get("key").and_then(Value::as_str) == Some(OUT_OF_SERVICE_TAINT)
}
