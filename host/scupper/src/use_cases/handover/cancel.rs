//! Cancels drains: deletes the LifecycleEvent; any other drain is cancelled by an annotation of its node, which the
//! process that drains watches.

use futures::StreamExt as _;
use scupper_engine::{Checkpoint, Intent};
use tokio::time::{Instant, timeout_at};

use super::create::{offered, offered_for};
use super::{CancelOptions, HandOverError};
use crate::use_cases::{CommandError, status};
use scupper_cluster::{CANCEL_ANNOTATION, Cluster, ConnectOptions, LifecycleEvent};
use scupper_driver::{DriverError, resolve_nodes};
use scupper_report::NodeStatus;
use scupper_triggers::slm::ClaimStatus;

/// What was cancelled at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled {
    /// The node.
    pub node: String,
    /// What was cancelled: `LifecycleEvent drain-worker-1-x7d2p`.
    pub drains: Vec<String>,
    /// The trigger of the drain that was under way: [`Checkpoint::trigger`].
    pub by: String,
    /// All of them have ended.
    pub over: bool,
}

/// Cancels every drain of the nodes that has not ended, and waits for its end.
pub(crate) async fn cancel(options: &CancelOptions) -> Result<Vec<Cancelled>, CommandError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let names = resolve_nodes(&cluster, &options.nodes).await?;
    let mut asked = Vec::new();
    // All of them are asked before any is waited for.
    for node in names {
        let request = ask(&cluster, options, &node).await?;
        asked.push((node, request));
    }
    let until = Instant::now() + options.wait_timeout;
    let mut cancelled = Vec::new();
    for (node, asked) in asked {
        let over = asked.is_nothing() || asked.wait(&cluster, &node, until).await?;
        if asked.mark.is_some() {
            let removed = cluster.remove_node_annotation(&node, CANCEL_ANNOTATION).await;
            removed.map_err(HandOverError::TakeBack)?;
        }
        cancelled.push(Cancelled {
            drains: asked.names(),
            by: asked.mark.map(|mark| mark.trigger).unwrap_or_default(),
            node,
            over,
        });
    }
    Ok(cancelled)
}

/// What was asked to stop.
struct CancelRequest {
    events: Vec<LifecycleEvent>,
    mark: Option<Checkpoint>,
}

async fn ask(cluster: &Cluster, options: &CancelOptions, node: &str) -> Result<CancelRequest, CommandError> {
    let unseen = DriverError::of_node(node);
    let mut events = Vec::new();
    if let Some((cluster, offered)) = offered(cluster.clone(), &options.driver, Intent::Drain).await?
        && let Some(transition) = offered_for(&offered, node)
    {
        let is_over = |event: &LifecycleEvent| ClaimStatus::parse(&event.claim_status).is_terminal();
        for event in cluster.events_of(node).await.map_err(&unseen)? {
            if event.transition_name == transition.name && !is_over(&event) {
                cluster
                    .delete_event(&event)
                    .await
                    .map_err(HandOverError::TakeBack)?;
                events.push(event);
            }
        }
    }
    let found = cluster.node(node).await.map_err(unseen)?;
    let mark = found.and_then(|node| node.checkpoint).filter(|mark| {
        let has_event = events.iter().any(|event| event.uid.0 == mark.id);
        mark.is_under_way() && mark.intent == Intent::Drain && !has_event
    });
    if let Some(mark) = &mark {
        let set = cluster
            .set_node_annotation(node, CANCEL_ANNOTATION, &mark.id)
            .await;
        set.map_err(HandOverError::TakeBack)?;
    }
    Ok(CancelRequest { events, mark })
}

impl CancelRequest {
    fn is_nothing(&self) -> bool {
        self.events.is_empty() && self.mark.is_none()
    }

    fn names(&self) -> Vec<String> {
        let events = self
            .events
            .iter()
            .map(|event| format!("LifecycleEvent {}", event.name));
        let mark = self
            .mark
            .iter()
            .map(|mark| format!("{} {}", mark.trigger, mark.name));
        events.chain(mark).collect()
    }

    /// Waits until it has ended; `false`: not in time.
    async fn wait(&self, cluster: &Cluster, node: &str, until: Instant) -> Result<bool, CommandError> {
        let mut statuses = status::follow(cluster, node).await?.boxed();
        let over = async {
            while let Some(status) = statuses.next().await {
                if self.is_over(&status) {
                    return;
                }
            }
        };
        Ok(timeout_at(until, over).await.is_ok())
    }

    fn is_over(&self, status: &NodeStatus) -> bool {
        let ids = self.events.iter().map(|event| &event.uid.0);
        let ids: Vec<_> = ids.chain(self.mark.iter().map(|mark| &mark.id)).collect();
        let at_work = status
            .node
            .checkpoint
            .as_ref()
            .is_some_and(|mark| mark.is_under_way() && ids.iter().any(|id| **id == mark.id));
        let there = |event: &LifecycleEvent| {
            status
                .lifecycle_events
                .iter()
                .any(|known| known.name == event.name)
        };
        !at_work && !self.events.iter().any(there)
    }
}
