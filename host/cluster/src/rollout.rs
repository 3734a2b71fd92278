//! Deployments: how they replace their pods, and their restart for a drain.

use scupper_engine::{Answer, DeploymentRef};
use scupper_pre_flight::Rollout;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Cluster;
use super::namespace_state::WireOwner;
use super::replicas::{Record, busy_with, is_raised, path};
use super::tasks::answer;
use super::wire::{nullable, seconds};
use super::write::Merge;

/// Names the drain that restarted or raised a Deployment, so that no drain does it twice.
pub(super) const SURGE_ANNOTATION: &str = "scupper.dev/surge";
/// The annotation of the pod template that `kubectl rollout restart` sets.
const RESTARTED_ANNOTATION: &str = "kubectl.kubernetes.io/restartedAt";

/// The fields of a Deployment's spec about its rollouts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireRollout {
    #[serde(deserialize_with = "nullable")]
    paused: bool,
    #[serde(deserialize_with = "nullable")]
    strategy: Strategy,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Strategy {
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: String,
    #[serde(deserialize_with = "nullable")]
    rolling_update: RollingUpdate,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RollingUpdate {
    max_unavailable: Option<WireAmount>,
    max_surge: Option<WireAmount>,
}

/// An `IntOrString`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum WireAmount {
    Pods(u32),
    Percent(String),
}

/// The default of both limits.
const DEFAULT_PERCENT: u32 = 25;

impl WireRollout {
    pub(super) fn into_engine(self, replicas: u32) -> Rollout {
        let RollingUpdate {
            max_unavailable,
            max_surge,
        } = self.strategy.rolling_update;
        let max_surge = resolved(max_surge, replicas, u64::div_ceil);
        let max_unavailable = resolved(max_unavailable, replicas, |share, of| share / of);
        Rollout {
            recreate: self.strategy.kind == "Recreate",
            paused: self.paused,
            // As the Deployment's controller does, which otherwise could do nothing.
            max_unavailable: if max_surge == 0 {
                max_unavailable.max(1)
            } else {
                max_unavailable
            },
            max_surge,
        }
    }
}

/// A limit as a number of pods.
fn resolved(amount: Option<WireAmount>, replicas: u32, divide: fn(u64, u64) -> u64) -> u32 {
    let percent = match amount {
        Some(WireAmount::Pods(pods)) => return pods,
        Some(WireAmount::Percent(text)) => text.strip_suffix('%').and_then(|text| text.parse().ok()),
        None => Some(DEFAULT_PERCENT),
    };
    // An unreadable limit counts as every pod: then the drain begins no rollout.
    let Some(percent) = percent else { return u32::MAX };
    let share = divide(u64::from(percent) * u64::from(replicas), 100);
    u32::try_from(share).unwrap_or(u32::MAX)
}

impl Cluster {
    /// Restarts a Deployment as `kubectl rollout restart` does, unless this drain has already done so, and not while
    /// another drain has raised it. Reads the Deployment first; the patch fails if it has changed since.
    pub(super) async fn restart_deployment(&self, deployment: &DeploymentRef, drain: &str) -> Answer {
        let found = match self.deployment_to_surge(deployment).await {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        match Record::of(&found, drain) {
            Record::Raised(_) | Record::TakenBack => return found.as_written(),
            // Our name beside its raise would hide that raise from its take-back.
            Record::OfOther(other) if is_raised(&found) => return busy_with(deployment, other),
            Record::OfOther(_) | Record::None => {}
        }
        if let Some(message) = found.rollout().obstacle() {
            return Answer::Rejected { message };
        }
        if !found.is_settled("Deployment") {
            let message = format!("a rollout of {deployment} is under way");
            return Answer::Busy { message };
        }
        let version = &found.meta().resource_version;
        let patch = restart(deployment, version, drain, &seconds(self.now()));
        match self
            .patch::<WireOwner>(&path(deployment), Merge::Json, &patch)
            .await
        {
            Ok(written) => written.as_written(),
            Err(fault) => answer(fault),
        }
    }
}

fn restart(deployment: &DeploymentRef, version: &str, drain: &str, now: &str) -> Value {
    json!({
        "metadata": {
            "uid": deployment.uid.as_str(), "resourceVersion": version, "annotations": {SURGE_ANNOTATION: drain},
        },
        "spec": {"template": {"metadata": {"annotations": {RESTARTED_ANNOTATION: now}}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(spec: Value, replicas: u32) -> Rollout {
        let wire: WireRollout = serde_json::from_value(spec).unwrap();
        wire.into_engine(replicas)
    }

    fn limits(rolling: Value, replicas: u32) -> (u32, u32) {
        let rollout = rollout(
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}),
            replicas,
        );
        (rollout.max_unavailable, rollout.max_surge)
    }

    #[test]
    fn limits_are_resolved_as_the_deployment_controller_does() {
        for replicas in 1..4 {
            assert_eq!(limits(json!(null), replicas), (0, 1), "{replicas}");
        }
        assert_eq!(
            limits(json!({"maxUnavailable": "25%", "maxSurge": "25%"}), 4),
            (1, 1)
        );
        assert_eq!(limits(json!({"maxUnavailable": 0, "maxSurge": "50%"}), 3), (0, 2));
        assert_eq!(limits(json!({"maxUnavailable": "0%", "maxSurge": 0}), 3), (1, 0));
        assert_eq!(limits(json!({"maxUnavailable": "some"}), 3), (u32::MAX, 1));
    }

    #[test]
    fn obstacles_are_read() {
        let plain = rollout(json!({}), 1);
        assert!(plain.obstacle().is_none());
        assert!(rollout(json!({"strategy": {"type": "Recreate"}}), 1).recreate);
        assert!(rollout(json!({"paused": true}), 1).paused);
    }
}
