//! Hears the node and the driver, and passes on what follows. It must not know why.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::state::{CordonLimits, CordonState, NodeFacts};
use crate::{DrainCommand, DriverState};
use scupper_common::clock::Clock;

/// A node that could not be looked at is looked at again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// How the door is set up.
#[derive(Clone, Debug)]
pub struct CordonOptions {
    /// The node's name.
    pub node: String,
    /// How long a drain may take.
    pub sla: Option<Duration>,
    /// How long an uncordon may take.
    pub uncordon_sla: Duration,
    /// What time it is.
    pub clock: Clock,
}

/// Looks at the node once; `None`: there is none, or it could not be looked at.
pub type ReadNode = Arc<dyn Fn() -> BoxFuture<'static, Option<NodeFacts>> + Send + Sync>;

/// What connects the door with the rest of the driver.
pub struct CordonDeps<N> {
    /// The node, whenever it changes; `None`: there is none.
    pub nodes: N,
    /// Looks at it once.
    pub read_node: ReadNode,
    /// Where wishes go.
    pub commands: mpsc::Sender<DrainCommand>,
    /// What the driver is at.
    pub driver_state: watch::Receiver<DriverState>,
    /// No other instance of this driver is at work, and this one does not stop.
    pub sole_instance: watch::Receiver<bool>,
}

/// Serves until the rest of the driver is gone.
pub async fn run<N>(options: CordonOptions, deps: CordonDeps<N>)
where
    N: Stream<Item = Option<NodeFacts>> + Send + Unpin,
{
    let CordonDeps {
        mut nodes,
        read_node,
        commands,
        mut driver_state,
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
            // The watch may be behind what the driver itself has just written.
            match read_node().await {
                Some(seen) => {
                    state.handle_driver_state(driver_state.borrow_and_update().clone());
                    state.handle_node(&seen);
                    state.begin(&seen, options.clock.now());
                    node = Some(seen);
                }
                None => sleep(RETRY).await,
            }
        }
        while let Some(command) = state.poll_command() {
            tracing::info!(demand = ?command, "demand");
            if commands.send(command).await.is_err() {
                return;
            }
        }
        tokio::select! {
            biased;
            changed = driver_state.changed() => match changed {
                Ok(()) => state.handle_driver_state(driver_state.borrow_and_update().clone()),
                Err(_) => return,
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
