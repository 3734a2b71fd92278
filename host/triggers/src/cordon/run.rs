//! Hears the node and the driver, and passes on what follows. It must not know why.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::watch::{Limits, NodeView, Watch};
use crate::{Demand, Standing};
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
pub type Look = Arc<dyn Fn() -> BoxFuture<'static, Option<NodeView>> + Send + Sync>;

/// What connects the door with the rest of the driver.
pub struct CordonWires<N> {
    /// The node, whenever it changes; `None`: there is none.
    pub nodes: N,
    /// Looks at it once.
    pub look: Look,
    /// Where wishes go.
    pub demands: mpsc::Sender<Demand>,
    /// What the driver is at.
    pub standing: watch::Receiver<Standing>,
    /// No other instance of this driver is at work, and this one does not stop.
    pub alone: watch::Receiver<bool>,
}

/// Serves until the rest of the driver is gone.
pub async fn run<N>(options: CordonOptions, wires: CordonWires<N>)
where
    N: Stream<Item = Option<NodeView>> + Send + Unpin,
{
    let CordonWires {
        mut nodes,
        look,
        demands,
        mut standing,
        mut alone,
    } = wires;
    let limits = Limits {
        drain: options.sla,
        uncordon: options.uncordon_sla,
    };
    let mut door = Watch::new(&options.node, limits);
    let mut node: Option<NodeView> = None;
    loop {
        let wanted = *alone.borrow_and_update() && node.as_ref().is_some_and(|node| door.wants(node));
        if wanted {
            // The watch may be behind what the driver itself has just written.
            match look().await {
                Some(seen) => {
                    door.handle_standing(standing.borrow_and_update().clone());
                    door.handle_node(&seen);
                    door.begin(&seen, options.clock.now());
                    node = Some(seen);
                }
                None => sleep(RETRY).await,
            }
        }
        while let Some(demand) = door.poll_demand() {
            tracing::info!(?demand, "demand");
            if demands.send(demand).await.is_err() {
                return;
            }
        }
        tokio::select! {
            biased;
            changed = standing.changed() => match changed {
                Ok(()) => door.handle_standing(standing.borrow_and_update().clone()),
                Err(_) => return,
            },
            changed = alone.changed() => if changed.is_err() {
                return;
            },
            seen = nodes.next() => match seen {
                Some(seen) => {
                    if let Some(seen) = &seen {
                        door.handle_node(seen);
                    }
                    node = seen;
                }
                None => return,
            },
            () = sleep(RETRY), if wanted => {}
        }
    }
}
