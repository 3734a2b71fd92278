//! Runs the engine of one node while this process holds the node's Lease, and waits while another process holds it. It
//! decides nothing about the drain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scupper_engine::{Event, Outcome, Request, Time};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::node_leases::{HeldLease, NodeLeases};
use crate::DriverError;
use crate::runner::{EngineRunner, ORDERS};
use scupper_common::clock::Clock;

/// How often a waiting process checks its deadline.
const RECHECK: Duration = Duration::from_secs(1);
/// How long the first attempt to take the Lease may last beyond a deadline.
const FIRST_ATTEMPT: Duration = Duration::from_secs(5);

/// Creates the engine of a drain once the node's Lease is ours.
pub(crate) trait DrainFactory: Send + Sync {
    /// Creates the drain, or continues the one on the node. It reads the node now: the previous holder of the Lease wrote
    /// to it. `orders`: all orders so far.
    fn create(&mut self, orders: &[Event]) -> impl Future<Output = Result<CreatedDrain, DriverError>> + Send;

    /// The request.
    fn request(&self) -> &Request;

    /// The drain's clock.
    fn clock(&self) -> Clock;

    /// The drain has changed the node, as far as is known without the Lease, and must be ended in order.
    fn has_begun(&self) -> bool;

    /// How long to wait for the Lease after the deadline; `None`: without limit, because the node must be rolled back.
    fn wait_after_deadline(&self) -> Option<Duration>;

    /// Reports that another process holds the Lease.
    fn waiting_for(&self, holder: &str);

    /// Reports that the deadline passed before the drain began, and returns its outcome.
    fn deadline_passed(&self) -> impl Future<Output = Outcome> + Send;
}

/// What a factory created.
pub(crate) enum CreatedDrain {
    /// An engine to run.
    Runner(Box<EngineRunner>),
    /// Nothing: the drain has ended, with this outcome if it is known.
    Over(Option<Outcome>),
}

/// Runs one drain under the node's Lease.
pub(crate) struct LeaseGuard<B> {
    pub(crate) leases: NodeLeases,
    pub(crate) node: String,
    pub(crate) factory: B,
    /// Orders given before the start.
    pub(crate) orders: Vec<Event>,
}

/// How a run under the Lease ended.
enum RunEnd {
    Ended(Option<Outcome>),
    /// The Lease may have expired.
    Lost,
}

/// The outcome of a drain that this order ends before it began.
pub(crate) fn called_off(order: &Event) -> Option<Outcome> {
    match order {
        Event::Cancel { reason } => Some(Outcome::Cancelled {
            reason: reason.clone(),
        }),
        Event::Lost { reason } => Some(Outcome::Lost {
            reason: reason.clone(),
        }),
        _ => None,
    }
}

impl<B: DrainFactory> LeaseGuard<B> {
    /// Runs until the drain has ended, or until `control` is closed.
    pub(crate) async fn run(
        mut self,
        mut control: mpsc::Receiver<Event>,
    ) -> Result<Option<Outcome>, DriverError> {
        let mut orders = std::mem::take(&mut self.orders);
        loop {
            let mut lease = match self.acquire(&mut control, &mut orders).await {
                Ok(lease) => lease,
                Err(outcome) => return Ok(outcome),
            };
            let end = match create(&mut self.factory, &mut lease, &mut control, &mut orders).await {
                Ok(Some(CreatedDrain::Runner(runner))) => {
                    run_engine(*runner, &mut lease, &mut control, &mut orders).await
                }
                Ok(Some(CreatedDrain::Over(outcome))) => RunEnd::Ended(outcome),
                Ok(None) => RunEnd::Lost,
                Err(error) => {
                    lease.release().await;
                    return Err(error);
                }
            };
            match end {
                RunEnd::Ended(outcome) => {
                    lease.release().await;
                    return Ok(outcome);
                }
                // The engine is dropped; the checkpoint on the node says where to continue.
                RunEnd::Lost => tracing::warn!(
                    node = self.node,
                    "the node's Lease could not be renewed: nothing is evicted until it is"
                ),
            }
        }
    }

    /// The Lease; or the outcome of a drain that was ended before it began.
    async fn acquire(
        &self,
        control: &mut mpsc::Receiver<Event>,
        orders: &mut Vec<Event>,
    ) -> Result<HeldLease, Option<Outcome>> {
        let is_taken = AtomicBool::new(false);
        let take = self.leases.take(&self.node, |holder| {
            is_taken.store(true, Ordering::Relaxed);
            self.factory.waiting_for(holder);
        });
        tokio::pin!(take);
        loop {
            let time_left = self.time_left(orders, is_taken.load(Ordering::Relaxed));
            if time_left.is_some_and(|time_left| time_left.is_zero()) {
                return Err(Some(self.factory.deadline_passed().await));
            }
            let order = tokio::select! {
                biased;
                order = control.recv() => order,
                lease = &mut take => return Ok(lease),
                // The holder and the state of the node may have changed by then.
                () = sleep(time_left.unwrap_or(RECHECK).min(RECHECK)) => continue,
            };
            let outcome = match &order {
                None => return Err(None),
                Some(order) => called_off(order),
            };
            if outcome.is_some() && !self.factory.has_begun() {
                return Err(outcome);
            }
            if let Some(order) = order {
                remember(orders, &order);
            }
        }
    }

    /// How long to wait for the Lease; `None`: without limit. `is_taken`: another process was seen to hold it.
    fn time_left(&self, orders: &[Event], is_taken: bool) -> Option<Duration> {
        let deadline = deadline(orders, self.factory.request().deadline)?;
        let wait_after_deadline = self.factory.wait_after_deadline()?;
        // If no other process holds the Lease, the drain itself reports a deadline that has passed.
        let wait_after_deadline = if is_taken {
            wait_after_deadline
        } else {
            wait_after_deadline + FIRST_ATTEMPT
        };
        let end = deadline + wait_after_deadline.into();
        Some(end.since(self.factory.clock().now()).into())
    }
}

/// The deadline by the last order about it.
fn deadline(orders: &[Event], first: Option<Time>) -> Option<Time> {
    let moved = orders.iter().rev().find_map(|order| match order {
        Event::Deadline(deadline) => Some(*deadline),
        _ => None,
    });
    moved.unwrap_or(first)
}

/// Creates the drain; `None`: the Lease was lost meanwhile.
async fn create<B: DrainFactory>(
    factory: &mut B,
    lease: &mut HeldLease,
    control: &mut mpsc::Receiver<Event>,
    orders: &mut Vec<Event>,
) -> Result<Option<CreatedDrain>, DriverError> {
    let known = orders.clone();
    let created = factory.create(&known);
    tokio::pin!(created);
    loop {
        tokio::select! {
            biased;
            () = lease.lost() => return Ok(None),
            order = control.recv() => match order {
                Some(order) => remember(orders, &order),
                None => return Ok(Some(CreatedDrain::Over(None))),
            },
            created = &mut created => return created.map(Some),
        }
    }
}

async fn run_engine(
    runner: EngineRunner,
    lease: &mut HeldLease,
    control: &mut mpsc::Receiver<Event>,
    known: &mut Vec<Event>,
) -> RunEnd {
    let (orders, inbox) = mpsc::channel(ORDERS);
    for order in known.iter() {
        // There is room: few orders are remembered.
        orders.try_send(order.clone()).unwrap_or_default();
    }
    let runner = runner.run(inbox);
    tokio::pin!(runner);
    loop {
        // A lost Lease comes before every event.
        tokio::select! {
            biased;
            () = lease.lost() => return RunEnd::Lost,
            order = control.recv(), if orders.capacity() > 0 => match order {
                Some(order) => {
                    remember(known, &order);
                    // A run that has ended takes no orders; its outcome follows.
                    orders.try_send(order).unwrap_or_default();
                }
                None => return RunEnd::Ended(None),
            },
            outcome = &mut runner => return RunEnd::Ended(outcome),
        }
    }
}

/// Keeps an order for later runs. A newer one of the same kind replaces it.
fn remember(orders: &mut Vec<Event>, order: &Event) {
    let same = std::mem::discriminant(order);
    orders.retain(|known| std::mem::discriminant(known) != same);
    orders.push(order.clone());
}
