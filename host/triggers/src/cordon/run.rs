//! Feeds changes of the node and of the driver into the state, and sends the resulting commands. It must not decide
//! anything.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::state::{CordonLimits, CordonState, NodeFacts};
use crate::{DrainCommand, DriverChanges};
use scupper_common::clock::Clock;

/// Delay before a failed read of the node is retried.
const RETRY: Duration = Duration::from_secs(2);

/// Settings of the cordon trigger.
#[derive(Clone, Debug)]
pub struct CordonOptions {
    /// The node's name.
    pub node: String,
    /// Time limit of a drain.
    pub sla: Option<Duration>,
    /// Time limit of an uncordon.
    pub uncordon_sla: Duration,
    /// The current time.
    pub clock: Clock,
}

/// Reads the node once; `None` if it does not exist or the read failed.
pub type ReadNode = Arc<dyn Fn() -> BoxFuture<'static, Option<NodeFacts>> + Send + Sync>;

/// Connects the trigger with the rest of the driver.
pub struct CordonDeps<N> {
    /// The node, on every change; `None` if it does not exist.
    pub nodes: N,
    /// Reads the node once.
    pub read_node: ReadNode,
    /// Receives the trigger's commands.
    pub commands: mpsc::Sender<DrainCommand>,
    /// The driver's current activity, and how each drain ended.
    pub driver_changes: DriverChanges,
    /// True while no other instance of this driver runs and this one is not stopping.
    pub sole_instance: watch::Receiver<bool>,
}

/// Serves until the rest of the driver has ended.
pub async fn run<N>(options: CordonOptions, deps: CordonDeps<N>)
where
    N: Stream<Item = Option<NodeFacts>> + Send + Unpin,
{
    let CordonDeps {
        mut nodes,
        read_node,
        commands,
        mut driver_changes,
        mut sole_instance,
    } = deps;
    let limits = CordonLimits {
        drain: options.sla,
        uncordon: options.uncordon_sla,
    };
    let mut state = CordonState::new(&options.node, limits);
    let mut node: Option<NodeFacts> = None;
    loop {
        let wanted =
            *sole_instance.borrow_and_update() && node.as_ref().is_some_and(|node| state.wants(node));
        if wanted {
            // The watch may lag behind the driver's own writes.
            match read_node().await {
                Some(seen) => {
                    state.handle_driver_changes(driver_changes.so_far());
                    state.handle_node(&seen);
                    state.begin(&seen, options.clock.now());
                    node = Some(seen);
                }
                None => sleep(RETRY).await,
            }
        }
        while let Some(command) = state.poll_command() {
            tracing::info!(?command, "command to the driver");
            if commands.send(command).await.is_err() {
                return;
            }
        }
        tokio::select! {
            biased;
            changes = driver_changes.next() => match changes {
                Some(changes) => state.handle_driver_changes(changes),
                None => return,
            },
            changed = sole_instance.changed() => if changed.is_err() {
                return;
            },
            seen = nodes.next() => match seen {
                Some(seen) => {
                    if let Some(seen) = &seen {
                        state.handle_node(seen);
                    }
                    node = seen;
                }
                None => return,
            },
            () = sleep(RETRY), if wanted => {}
        }
    }
}
