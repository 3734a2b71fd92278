//! Runs drives of one node while its lease is ours, and stands by while it is not. It decides nothing about the drain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scupper_engine::{Event, Outcome, Request, Time};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::node_leases::{HeldLease, NodeLeases};
use crate::DriverError;
use crate::runner::{EngineRunner, ORDERS};
use scupper_common::clock::Clock;

/// Whether the deadline ends the waiting is looked at again after so long.
const RECHECK: Duration = Duration::from_secs(1);
/// How long the first try to take the lease may last beyond a deadline.
const FIRST_ATTEMPT: Duration = Duration::from_secs(5);

/// How a drive is begun.
pub(crate) trait DrainFactory: Send + Sync {
    /// Begins, or goes on from what stands on the node: it is read now that the lease is ours, because whoever had it
    /// until now has written to the node. `orders`: what was ordered until now.
    fn create(&mut self, orders: &[Event]) -> impl Future<Output = Result<CreatedDrain, DriverError>> + Send;

    /// What is wanted.
    fn request(&self) -> &Request;

    /// What time it is.
    fn clock(&self) -> Clock;

    /// Something of it stands on the node, as far as is known without the lease, which must be brought to an end.
    fn has_begun(&self) -> bool;

    /// How long after the deadline the lease is still waited for; `None`: until it is ours, because what stands on the
    /// node must be put back.
    fn wait_after_deadline(&self) -> Option<Duration>;

    /// Somebody else is at the node.
    fn waiting_for(&self, holder: &str);

    /// The deadline has passed before it could begin: says so, and how it ended.
    fn deadline_passed(&self) -> impl Future<Output = Outcome> + Send;
}

/// What a begin came to.
pub(crate) enum CreatedDrain {
    /// There is something to be done.
    Runner(Box<EngineRunner>),
    /// Nothing is to be done any more: it ended like this, where that is known.
    Over(Option<Outcome>),
}

/// One node, and whoever wants to work at it.
pub(crate) struct LeaseGuard<B> {
    pub(crate) leases: NodeLeases,
    pub(crate) node: String,
    pub(crate) factory: B,
    /// What is ordered from the first.
    pub(crate) orders: Vec<Event>,
}

/// How a drive under a lease went.
enum RunEnd {
    Ended(Option<Outcome>),
    /// The lease is not surely ours any more.
    Lost,
}

/// How an order ends a drain that has not begun, if it does.
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
    /// Runs until the drain has ended, or until nobody holds `control` any more.
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
                // Nothing of the drive goes on; what it was at stands on the node.
                RunEnd::Lost => tracing::warn!(
                    node = self.node,
                    "the node's Lease could not be renewed: no pod is asked to leave until it is"
                ),
            }
        }
    }

    /// The seat; or an outcome, where nothing was begun and it is not wanted any more.
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
                // Who is at the node, and whether something stands there, may be another matter by then.
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

    /// How long it may stand by; `None`: until the lease is ours. `is_taken`: another process was seen to have it.
    fn time_left(&self, orders: &[Event], is_taken: bool) -> Option<Duration> {
        let deadline = deadline(orders, self.factory.request().deadline)?;
        let wait_after_deadline = self.factory.wait_after_deadline()?;
        // A deadline that has passed is the drain's own to tell, where nobody else is at the node.
        let wait_after_deadline = if is_taken {
            wait_after_deadline
        } else {
            wait_after_deadline + FIRST_ATTEMPT
        };
        let end = deadline + wait_after_deadline.into();
        Some(end.since(self.factory.clock().now()).into())
    }
}

/// The last word on the deadline.
fn deadline(orders: &[Event], first: Option<Time>) -> Option<Time> {
    let moved = orders.iter().rev().find_map(|order| match order {
        Event::Deadline(deadline) => Some(*deadline),
        _ => None,
    });
    moved.unwrap_or(first)
}

/// Begins; `None`: the lease was lost meanwhile, or nobody wants it any more, which the next look at `control` tells.
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
        // There is room: few orders are worth remembering.
        orders.try_send(order.clone()).unwrap_or_default();
    }
    let runner = runner.run(inbox);
    tokio::pin!(runner);
    loop {
        // Whether it is still ours comes before anything that would follow from an event.
        tokio::select! {
            biased;
            () = lease.lost() => return RunEnd::Lost,
            order = control.recv(), if orders.capacity() > 0 => match order {
                Some(order) => {
                    remember(known, &order);
                    // A drive that is over takes no orders; its end is on its way to us.
                    orders.try_send(order).unwrap_or_default();
                }
                None => return RunEnd::Ended(None),
            },
            outcome = &mut runner => return RunEnd::Ended(outcome),
        }
    }
}

/// What was ordered counts for every drive that follows, too. Of deadlines the last one does.
fn remember(orders: &mut Vec<Event>, order: &Event) {
    let same = std::mem::discriminant(order);
    orders.retain(|known| std::mem::discriminant(known) != same);
    orders.push(order.clone());
}
