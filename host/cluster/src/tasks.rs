//! Carries out the engine's tasks.

use scupper_engine::{Answer, Checkpoint, SurgeMethod, Task, Uid};
use serde_json::{Value, json};

use super::Cluster;
use super::node::{DRAIN_ANNOTATION, WireNode};
use super::transport::{Fault, escaped};
use super::wire::Object as _;
use super::write::Merge;

impl Cluster {
    /// Carries out a task for the node, once. A write applies only to the node with the task's UID, not to another one
    /// of the same name. `Plan` and `Step` belong to the policy edge and are answered with `Rejected`.
    pub async fn perform(&self, node: &str, task: &Task) -> Answer {
        match task {
            Task::Cordon {
                node: uid,
                checkpoint,
                version,
            } => {
                let cordon = Some((version.as_str(), true));
                self.write_node((node, uid), Some(checkpoint), cordon).await
            }
            Task::Uncordon {
                node: uid,
                checkpoint,
                version,
            } => {
                let cordon = Some((version.as_str(), false));
                self.write_node((node, uid), checkpoint.as_ref(), cordon).await
            }
            Task::Save {
                node: uid,
                checkpoint,
            } => self.write_node((node, uid), Some(checkpoint), None).await,
            Task::Forget { node: uid } => self.write_node((node, uid), None, None).await,
            Task::Evict { pod, grace_seconds } => Answer::Evict(self.evict(pod, *grace_seconds).await),
            Task::Delete { pod, grace_seconds } => Answer::Evict(self.delete(pod, *grace_seconds).await),
            Task::ListPods => match self.pods(node).await {
                Ok(pods) => Answer::Pods(pods),
                Err(error) => Answer::Unavailable {
                    message: error.to_string(),
                },
            },
            Task::ListVolumes => self.list_volumes(node).await,
            Task::Surge {
                deployment,
                drain,
                method,
            } => match method {
                SurgeMethod::Restart => self.restart_deployment(deployment, drain).await,
                SurgeMethod::Scale => self.raise_replicas(deployment, drain).await,
            },
            Task::TakeBack { deployment, drain } => self.take_replica_back(deployment, drain).await,
            Task::Plan { .. } | Task::Step { .. } | Task::ChooseSurges { .. } => Answer::Rejected {
                message: format!("the API server has no part in the task {}", task.name()),
            },
        }
    }

    /// Writes the checkpoint and, if requested, the cordon in the same patch. A cordon includes the version on which
    /// the decision was based: the patch fails if anything has changed since, such as a cordon or a checkpoint from
    /// elsewhere. The kubelet's heartbeats are also such changes; they cost one more try.
    async fn write_node(
        &self,
        (node, uid): (&str, &Uid),
        kept: Option<&Checkpoint>,
        cordon: Option<(&str, bool)>,
    ) -> Answer {
        let note = match kept.map(scupper_checkpoint::encode).transpose() {
            Ok(note) => note.map_or(Value::Null, Value::String),
            Err(fault) => {
                return Answer::Rejected {
                    message: format!("the checkpoint of node {node}: {fault}"),
                };
            }
        };
        let bytes = note
            .as_str()
            .map_or(0, |note| note.len() + DRAIN_ANNOTATION.len());
        let patch = patch(uid, note, cordon);
        let path = format!("/api/v1/nodes/{}", escaped(node));
        match self.patch::<WireNode>(&path, Merge::Json, &patch).await {
            Ok(node) => Answer::Written {
                version: node.meta().resource_version.clone(),
            },
            Err(fault) if fault.is_of_full_annotations() => Answer::Rejected {
                message: self.full_annotations(node, bytes).await,
            },
            Err(fault) => answer(fault),
        }
    }
}

/// The UID is immutable, so the server refuses the patch for another node. `spec.unschedulable` is removed rather than
/// set to `false`, as `kubectl uncordon` does.
fn patch(uid: &Uid, note: Value, cordon: Option<(&str, bool)>) -> Value {
    let annotations = json!({DRAIN_ANNOTATION: note});
    match cordon {
        None => json!({"metadata": {"uid": uid.as_str(), "annotations": annotations}}),
        Some((version, cordon)) => json!({
            "metadata": {"uid": uid.as_str(), "resourceVersion": version, "annotations": annotations},
            "spec": {"unschedulable": if cordon { Value::Bool(true) } else { Value::Null }},
        }),
    }
}

pub(super) fn answer(fault: Fault) -> Answer {
    match fault {
        Fault::Refused(409, _) => Answer::WriteConflict,
        fault if fault.is_of_another_uid() || fault.is_not_found() => Answer::NodeGone,
        Fault::Refused(408 | 429 | 500.., status) => Answer::Unavailable {
            message: status.message,
        },
        Fault::Refused(401 | 403, status) => Answer::Forbidden {
            message: status.message,
        },
        Fault::Refused(_, status) => Answer::Rejected {
            message: status.message,
        },
        Fault::Unreachable(message) | Fault::Malformed(message) => Answer::Unavailable { message },
    }
}
