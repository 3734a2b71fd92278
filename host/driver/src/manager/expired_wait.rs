//! The end of a drain whose deadline passed while it waited for the node's Lease. It has changed nothing, so there is
//! nothing to roll back, only the end to report.

use std::time::Duration;

use scupper_engine::{Answer, Notice, Outcome, PodRef, Request, Summary, Task, Time};
use tokio::time::timeout;

use scupper_cluster::{Cluster, KubernetesEvent};
use scupper_common::clock::Clock;
use scupper_common::event_throttle::Repeated;
use scupper_report::event_for;
use scupper_runner::reporter::write_retry::{self, WriteRetryLimits};
use scupper_runner::reporter::{EventSeriesKey, kubernetes_event};

/// How long the end waits for the names of the pods that are there.
const LISTED_WITHIN: Duration = Duration::from_secs(1);

/// The outcome and the summary. `since`: when the drain was requested.
pub(crate) async fn end_of_waiting(
    cluster: &Cluster,
    clock: Clock,
    request: &Request,
    since: Time,
) -> (Outcome, Summary) {
    let remaining = remaining(cluster, &request.node).await;
    let summary = Summary {
        started: since,
        ended: clock.now(),
        remaining: u32::try_from(remaining.len()).unwrap_or(u32::MAX),
        ..Summary::default()
    };
    let outcome = Outcome::DeadlineExceeded {
        remaining,
        held_up: None,
    };
    (outcome, summary)
}

/// The Event about the node that reports it.
pub(crate) fn end_event(
    request: &Request,
    (outcome, summary): &(Outcome, Summary),
) -> Option<KubernetesEvent> {
    let notice = Notice::Finished {
        outcome: outcome.clone(),
        summary: summary.clone(),
    };
    let event = event_for(request, &notice)?;
    let once = Repeated {
        times: 1,
        last: summary.ended,
    };
    Some(kubernetes_event(request, event, once, EventSeriesKey::PerText))
}

pub(crate) async fn emit(cluster: Cluster, event: KubernetesEvent) {
    write_retry::emit(&cluster, &event, WriteRetryLimits::FOR_A_MINUTE).await;
}

/// The pods that the drain would have evicted, as far as is known without a plan: all but mirror pods and those of
/// DaemonSets. None if they cannot be listed at once.
async fn remaining(cluster: &Cluster, node: &str) -> Vec<PodRef> {
    let listed = timeout(LISTED_WITHIN, cluster.perform(node, &Task::ListPods)).await;
    let Ok(Answer::Pods(pods)) = listed else {
        return Vec::new();
    };
    let leaves = pods
        .into_iter()
        .filter(|pod| !pod.is_mirror() && !pod.is_daemon());
    leaves.map(|pod| pod.id).collect()
}
