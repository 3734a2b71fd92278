//! What happened to the policies, counted and told on the node: an Event for each happening, and one annotation that names what is
//! active. The policy edge says it, the cluster edge writes it, and neither knows the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::adapters::metrics;
use crate::reporter::write_retry::{RetryLimits, WriteRetry};
use scupper_cluster::{Cluster, KubernetesEvent, Severity};
use scupper_policy_reload::{Catalogue, ReloadNotice};
use scupper_report::Metrics;

/// Names the active policies: `slurm=sha256:abcd1234(v0.2.0,gen 3),...`.
const ANNOTATION: &str = "scupper.dev/policies";

/// Digits of a digest that people compare.
const DIGITS: usize = 8;

/// How long one write is tried. What was missed is written with the next change.
const LIMITS: RetryLimits = RetryLimits {
    refusals: 8,
    patience: Some(Duration::from_secs(600)),
};

/// Tells until nobody has anything to tell any more.
pub(crate) async fn tell(
    cluster: Cluster,
    node: String,
    catalogue: Arc<Catalogue>,
    counts: Metrics,
    mut heard: mpsc::UnboundedReceiver<ReloadNotice>,
    changed: Arc<Notify>,
) {
    let mut written = known(&cluster, &node).await;
    while let Some(notice) = heard.recv().await {
        metrics::count(&counts, &notice);
        changed.notify_one();
        let active = annotation(&catalogue);
        // A restart activates what was active before: no news for the node.
        let news = !matches!(notice, ReloadNotice::Activated { .. }) || written.as_ref() != Some(&active);
        if news && let Some(event) = event(&node, &notice) {
            emit(&cluster, &event).await;
        }
        if written.as_ref() != Some(&active)
            && let Some(active) = annotate(&cluster, &node, &catalogue).await
        {
            written = Some(active);
        }
    }
}

/// What the node says already.
async fn known(cluster: &Cluster, node: &str) -> Option<String> {
    let node = cluster.node(node).await.ok()??;
    node.annotations.get(ANNOTATION).cloned()
}

fn annotation(catalogue: &Catalogue) -> String {
    let slots = catalogue.slots();
    let active = slots.iter().filter(|slot| !slot.digest.is_empty());
    let active = active.map(|slot| {
        let digest = slot.digest.get(..DIGITS).unwrap_or(&slot.digest);
        format!(
            "{}=sha256:{digest}(v{},gen {})",
            slot.name, slot.version, slot.generation
        )
    });
    active.collect::<Vec<_>>().join(",")
}

fn event(node: &str, notice: &ReloadNotice) -> Option<KubernetesEvent> {
    let reason = match notice {
        ReloadNotice::Activated { .. } => "PolicyActivated",
        ReloadNotice::Rejected { .. } => "PolicyRejected",
        ReloadNotice::RolledBack { .. } => "PolicyRolledBack",
        ReloadNotice::Degraded { .. } => "PolicyDegraded",
        ReloadNotice::HookRestarted { .. } => "PolicyHookBegunAgain",
        ReloadNotice::Removed { .. } => "PolicyRemoved",
    };
    Some(KubernetesEvent {
        node: node.to_owned(),
        severity: Severity::of(notice.is_warning()),
        reason: reason.to_owned(),
        action: "ReloadPolicies".to_owned(),
        note: notice.to_string(),
        series: None,
    })
}

/// Until it is written, or too old to be of use.
pub(crate) async fn emit(cluster: &Cluster, event: &KubernetesEvent) {
    let mut retry = WriteRetry::new(LIMITS);
    while let Err(error) = cluster.emit(event).await {
        let Some(pause) = retry.failed(&error) else {
            tracing::warn!(%error, "an Event about a policy could not be written");
            return;
        };
        tracing::debug!(%error, "an Event about a policy could not be written yet");
        sleep(pause).await;
    }
}

/// Until what is active at that time is written; what it is then. `None`: it could not be written.
async fn annotate(cluster: &Cluster, node: &str, catalogue: &Catalogue) -> Option<String> {
    let mut retry = WriteRetry::new(LIMITS);
    loop {
        let active = annotation(catalogue);
        let Err(error) = cluster.set_node_annotation(node, ANNOTATION, &active).await else {
            return Some(active);
        };
        let Some(pause) = retry.failed(&error) else {
            tracing::warn!(%error, "could not publish the active policies on the node");
            return None;
        };
        tracing::debug!(%error, "could not publish the active policies on the node yet");
        sleep(pause).await;
    }
}
