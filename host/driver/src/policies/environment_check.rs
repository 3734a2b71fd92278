//! The policies' checks of their environment, which the driver runs after each load. A failed check stops neither a drain
//! nor the driver.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::Node;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::policies::policy_events;
use scupper_cluster::{Cluster, KubernetesEvent};
use scupper_common::clock::Clock;
use scupper_policy::{EnvironmentFindings, PolicyFinding, Severity};
use scupper_policy_reload::Catalogue;
use scupper_runner::reporter::write_retry;

/// How often to try to read the node.
const READS: u32 = 30;
const READ_AGAIN: Duration = Duration::from_secs(2);

/// Runs the checks of the active policies whenever these change. Reports each finding once: in the log, and an error also
/// as an Event of the node.
pub(crate) async fn watch(
    cluster: Cluster,
    node: String,
    catalogue: Arc<Catalogue>,
    clock: Clock,
    changed: Arc<Notify>,
) {
    let mut reported = BTreeSet::new();
    loop {
        let read = read(&cluster, &node).await;
        for EnvironmentFindings { policy, findings } in catalogue.check(read.as_ref(), clock.now()).await {
            for found in findings {
                let text = finding_text(&policy, &found);
                if reported.insert((found.severity, text.clone())) {
                    report(&cluster, &node, found.severity, text).await;
                }
            }
        }
        changed.notified().await;
    }
}

async fn read(cluster: &Cluster, name: &str) -> Option<Node> {
    for _ in 0..READS {
        match cluster.node(name).await {
            Ok(node) => return node,
            Err(error) => tracing::debug!(%error, "the node could not be read for the policies' checks yet"),
        }
        sleep(READ_AGAIN).await;
    }
    None
}

async fn report(cluster: &Cluster, node: &str, severity: Severity, text: String) {
    match severity {
        Severity::Ok => tracing::info!(target: "scupper::policy", "{text}"),
        Severity::Warning => tracing::warn!(target: "scupper::policy", "{text}"),
        Severity::Error => {
            tracing::error!(target: "scupper::policy", "{text}");
            let warning = scupper_cluster::Severity::Warning;
            let event = KubernetesEvent {
                action: "CheckPolicies".to_owned(),
                ..KubernetesEvent::of_node(node, warning, "PolicyCheckFailed", text)
            };
            write_retry::emit(cluster, &event, policy_events::LIMITS).await;
        }
    }
}

fn finding_text(policy: &str, found: &PolicyFinding) -> String {
    let fix = match found.fix.as_str() {
        "" => String::new(),
        fix => format!("; to fix it: {fix}"),
    };
    format!(
        "policy {policy}: check of {}: {}{fix}",
        found.subject, found.message
    )
}
