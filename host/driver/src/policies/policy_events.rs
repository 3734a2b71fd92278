//! Reports reloads of policies: metrics, an Event for each, and an annotation of the node that names the active ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::adapters::metrics;
use scupper_cluster::{Cluster, KubernetesEvent, Severity};
use scupper_metrics::Metrics;
use scupper_policy_reload::{Catalogue, ReloadNotice, SlotStatus};
use scupper_runner::reporter::write_retry::{self, WriteRetry, WriteRetryLimits};

/// Names the active policies: `slurm=sha256:abcd1234(v0.2.0,gen 3),...`.
pub const ACTIVE_POLICIES: &str = "scupper.dev/policies";

/// Digits of a digest that people compare.
const DIGITS: usize = 8;

/// How long to retry one write. The next change writes what was missed.
pub(crate) const LIMITS: WriteRetryLimits = WriteRetryLimits {
    refusals: 8,
    unanswered_for: Some(Duration::from_secs(600)),
};

/// Reports until the channel of notices is closed.
pub(crate) async fn run(
    cluster: Cluster,
    node: String,
    catalogue: Arc<Catalogue>,
    counts: Metrics,
    mut notices: mpsc::UnboundedReceiver<ReloadNotice>,
    changed: Arc<Notify>,
) {
    let mut written = read_annotation(&cluster, &node).await;
    while let Some(notice) = notices.recv().await {
        metrics::count(&counts, &notice);
        changed.notify_one();
        let active = annotation(&catalogue);
        // A restart activates what was active before: the node needs no Event.
        let news = !matches!(notice, ReloadNotice::Activated { .. }) || written.as_ref() != Some(&active);
        if news {
            let event = event(&node, &notice);
            write_retry::emit(&cluster, &event, LIMITS).await;
        }
        if written.as_ref() != Some(&active)
            && let Some(active) = annotate(&cluster, &node, &catalogue).await
        {
            written = Some(active);
        }
    }
}

/// The annotation that the node already has.
async fn read_annotation(cluster: &Cluster, node: &str) -> Option<String> {
    let node = cluster.node(node).await.ok()??;
    node.annotations.get(ACTIVE_POLICIES).cloned()
}

fn annotation(catalogue: &Catalogue) -> String {
    let slots = catalogue.slots();
    let is_active = |slot: &&SlotStatus| !slot.digest.is_empty() && !slot.mode.is_shadow();
    let active = slots.iter().filter(is_active);
    let active = active.map(|slot| {
        let digest = slot.digest.get(..DIGITS).unwrap_or(&slot.digest);
        format!(
            "{}=sha256:{digest}(v{},gen {})",
            slot.name, slot.version, slot.generation
        )
    });
    active.collect::<Vec<_>>().join(",")
}

fn event(node: &str, notice: &ReloadNotice) -> KubernetesEvent {
    let reason = match notice {
        ReloadNotice::Activated { .. } => "PolicyActivated",
        ReloadNotice::Rejected { .. } => "PolicyRejected",
        ReloadNotice::RolledBack { .. } => "PolicyRolledBack",
        ReloadNotice::Degraded { .. } => "PolicyDegraded",
        ReloadNotice::HookRestarted { .. } => "PolicyHookBegunAgain",
        ReloadNotice::Removed { .. } => "PolicyRemoved",
    };
    let severity = Severity::of(notice.is_warning());
    KubernetesEvent {
        action: "ReloadPolicies".to_owned(),
        ..KubernetesEvent::of_node(node, severity, reason, notice.to_string())
    }
}

/// Retries until the annotation is written, and returns it. `None`: it could not be written.
async fn annotate(cluster: &Cluster, node: &str, catalogue: &Catalogue) -> Option<String> {
    let mut retry = WriteRetry::new(LIMITS);
    loop {
        let active = annotation(catalogue);
        let Err(error) = cluster.set_node_annotation(node, ACTIVE_POLICIES, &active).await else {
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
