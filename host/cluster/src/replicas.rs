//! Deployments whose replicas a drain raises by one, and takes back, and the autoscalers that would undo it.
//!
//! One patch of the Deployment changes the replicas and records that in annotations, so that neither happens without the
//! other; the subresource `scale` has no annotations. `scupper.dev/surge` names the last drain that has written the
//! Deployment and stays, so that a raise that arrives after its take-back fails.

use std::collections::BTreeMap;

use scupper_engine::{Answer, DeploymentRef};
use serde::Deserialize;
use serde_json::{Value, json};

use super::listing::Source;
use super::namespace_state::WireOwner;
use super::rollout::SURGE_ANNOTATION;
use super::tasks::answer;
use super::transport::escaped;
use super::wire::{Meta, nullable};
use super::write::Merge;
use super::{Cluster, ReadError};

/// How many replicas the Deployment had before a drain raised it.
const RAISED_ANNOTATION: &str = "scupper.dev/raised-from";

/// What the annotations say about this drain.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// It has not written the Deployment, and nor has another drain that is not done.
    None,
    /// Another drain has raised it.
    OfOther(&'a str),
    /// This drain has raised it; from how many replicas.
    Raised(&'a str),
    /// This drain has taken it back, or restarted it.
    TakenBack,
}

impl Record<'_> {
    pub(super) fn of<'a>(found: &'a WireOwner, drain: &str) -> Record<'a> {
        let annotation = |key| found.meta().annotations.get(key).map(String::as_str);
        let raised = annotation(RAISED_ANNOTATION);
        match (annotation(SURGE_ANNOTATION), raised) {
            (Some(by), Some(from)) if by == drain => Record::Raised(from),
            (Some(by), None) if by == drain => Record::TakenBack,
            (by, Some(_)) => Record::OfOther(by.unwrap_or_default()),
            (_, None) => Record::None,
        }
    }
}

/// The replicas are still as the drain that has written its record has raised them.
pub(super) fn is_raised(found: &WireOwner) -> bool {
    let before = found.replicas().checked_sub(1).map(|before| before.to_string());
    before.is_some() && found.meta().annotations.get(RAISED_ANNOTATION) == before.as_ref()
}

impl Cluster {
    /// Raises the replicas of a Deployment by one for this drain, once.
    pub(super) async fn raise_replicas(&self, deployment: &DeploymentRef, drain: &str) -> Answer {
        let found = match self.deployment_to_surge(deployment).await {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        match Record::of(&found, drain) {
            Record::Raised(_) => return found.as_written(),
            Record::TakenBack => {
                let message = "this drain has raised its replicas before".to_owned();
                return Answer::Rejected { message };
            }
            Record::OfOther(other) => return busy_with(deployment, other),
            Record::None => {}
        }
        if !found.is_settled("Deployment") {
            let message = format!("a rollout of {deployment} is under way");
            return Answer::Busy { message };
        }
        let from = found.replicas();
        let record = json!({SURGE_ANNOTATION: drain, RAISED_ANNOTATION: from.to_string()});
        self.write_replicas(deployment, &found, record, Some(from.saturating_add(1)))
            .await
    }

    /// Takes back what [`raise_replicas`](Self::raise_replicas) has done for this drain, unless the replicas were changed
    /// since. A raise that is still under way fails, because the Deployment has another version then.
    pub(super) async fn take_replica_back(&self, deployment: &DeploymentRef, drain: &str) -> Answer {
        let found = match self.deployment_to_surge(deployment).await {
            Ok(found) => found,
            Err(answer) => return answer,
        };
        let from = match Record::of(&found, drain) {
            Record::OfOther(_) | Record::TakenBack => return found.as_written(),
            Record::None => {
                let record = json!({SURGE_ANNOTATION: drain});
                return self.write_replicas(deployment, &found, record, None).await;
            }
            Record::Raised(from) => from.parse::<u32>().ok(),
        };
        let now = found.replicas();
        let is_ours = from.is_some_and(|from| now == from.saturating_add(1));
        let replicas = from.filter(|_| is_ours);
        let record = json!({RAISED_ANNOTATION: null});
        let written = self.write_replicas(deployment, &found, record, replicas).await;
        match written {
            Answer::Written { .. } if !is_ours && from != Some(now) => Answer::Rejected {
                message: format!("another client has set its replicas to {now}"),
            },
            written => written,
        }
    }

    async fn write_replicas(
        &self,
        deployment: &DeploymentRef,
        found: &WireOwner,
        record: Value,
        replicas: Option<u32>,
    ) -> Answer {
        let spec = replicas.map_or_else(|| json!({}), |replicas| json!({ "replicas": replicas }));
        let patch = json!({
            "metadata": {
                "uid": deployment.uid.as_str(), "resourceVersion": found.meta().resource_version, "annotations": record,
            },
            "spec": spec,
        });
        match self
            .patch::<WireOwner>(&path(deployment), Merge::Json, &patch)
            .await
        {
            Ok(written) => written.as_written(),
            Err(fault) => answer(fault),
        }
    }

    /// Reads a Deployment, if it is still this one and is not being deleted.
    pub(super) async fn deployment_to_surge(&self, deployment: &DeploymentRef) -> Result<WireOwner, Answer> {
        let found = self.get::<WireOwner>(&path(deployment)).await.map_err(answer)?;
        let meta = found.meta();
        if meta.uid != deployment.uid.as_str() || meta.deletion_timestamp.is_some() {
            return Err(Answer::NodeGone);
        }
        Ok(found)
    }

    /// The HorizontalPodAutoscalers of a namespace, by the Deployments whose replicas they set.
    pub(super) async fn autoscalers(&self, namespace: &str) -> Result<BTreeMap<String, String>, ReadError> {
        let source = Source::all(format!(
            "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
            escaped(namespace)
        ));
        let listed = self.read_list::<WireAutoscaler>(&source, "list horizontalpodautoscalers");
        let of_deployments = listed
            .await?
            .into_iter()
            .filter(|it| it.spec.target.kind == "Deployment");
        Ok(of_deployments
            .map(|it| (it.spec.target.name, it.metadata.name))
            .collect())
    }
}

/// Another drain, which this names, has raised the Deployment.
pub(super) fn busy_with(deployment: &DeploymentRef, other: &str) -> Answer {
    let other = text_of_mark(other);
    let message = format!("{other} has raised the replicas of {deployment}");
    Answer::Busy { message }
}

/// A drain by what names it on a Deployment ([`surge_mark`](scupper_engine::surge_mark)).
fn text_of_mark(mark: &str) -> String {
    let mut parts = mark.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(node), Some(_), Some(drain)) => format!("the drain of node {node} ({drain})"),
        _ => format!("drain {mark}"),
    }
}

/// How many replicas more than its owner wants a Deployment has, because a drain has raised it.
pub(super) fn raised(meta: &Meta, replicas: Option<u32>) -> u32 {
    let from = meta.annotations.get(RAISED_ANNOTATION);
    let from = from.and_then(|from| from.parse::<u32>().ok()?.checked_add(1));
    u32::from(from.is_some() && from == replicas)
}

pub(super) fn path(deployment: &DeploymentRef) -> String {
    format!(
        "/apis/apps/v1/namespaces/{}/deployments/{}",
        escaped(&deployment.namespace),
        escaped(&deployment.name)
    )
}

#[derive(Clone, Debug, Deserialize)]
struct WireAutoscaler {
    metadata: Named,
    spec: AutoscalerSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct AutoscalerSpec {
    #[serde(rename = "scaleTargetRef")]
    target: Named,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(deserialize_with = "nullable")]
    kind: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
}
