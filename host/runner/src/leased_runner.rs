//! Runs one drain under the node's Lease: waits for the Lease, runs the engine, and starts over if the Lease is lost. It
//! decides nothing about the drain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scupper_engine::{Outcome, Request};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::engine_runner::EngineRunner;
use crate::orders::{DrainOrders, closed};
use scupper_common::clock::Clock;
use scupper_lease::{HeldLease, LeaseRecord, NodeLeases};
use scupper_report::LeasedDrain;

/// How often a waiting process checks its deadline.
const RECHECK: Duration = Duration::from_secs(1);
/// How long the first attempt to take the Lease may last beyond a deadline.
const FIRST_ATTEMPT: Duration = Duration::from_secs(5);

/// What differs between a driver's drain and a command's: how it is created, and how it waits for the Lease.
pub trait DrainFactory: Send + Sync {
    /// Why a drain cannot be created.
    type Error;

    /// Creates the drain, or continues the one on the node. It reads the node now: the previous holder of the Lease wrote
    /// to it. `orders`: the orders that hold. `lease`: what the Lease says of what policies must undo.
    fn create(
        &mut self,
        orders: &DrainOrders,
        lease: &LeaseRecord,
    ) -> impl Future<Output = Result<CreatedDrain, Self::Error>> + Send;

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

    /// The request was withdrawn before the drain began, which nothing else reports.
    fn called_off(&self, _: &Outcome) {}

    /// Reports that the deadline passed before the drain began, and returns its outcome.
    fn deadline_passed(&self) -> impl Future<Output = Outcome> + Send;
}

/// What a factory created.
pub enum CreatedDrain {
    /// An engine to run.
    Runner(Box<EngineRunner>),
    /// Nothing: the drain has ended, with this outcome if it is known.
    Over(Option<Outcome>),
}

/// Runs one drain under the node's Lease.
pub struct LeasedRunner<F> {
    /// Where the Lease is taken.
    pub leases: NodeLeases,
    /// The node to drain.
    pub node: String,
    /// Creates the drain once the Lease is held.
    pub factory: F,
}

/// How a run under the Lease ended.
enum LeasedRunEnd {
    Ended(Option<Outcome>),
    /// The Lease may have expired.
    Lost,
}

impl<F: DrainFactory> LeasedRunner<F> {
    /// Runs until the drain has ended, or until `orders` is closed.
    pub async fn run(
        mut self,
        mut orders: watch::Receiver<DrainOrders>,
    ) -> Result<Option<Outcome>, F::Error> {
        loop {
            let mut lease = match self.acquire(&mut orders).await {
                Ok(lease) => lease,
                Err(outcome) => return Ok(outcome),
            };
            let end = match create(&mut self.factory, &mut lease, &mut orders).await {
                Ok(Some(CreatedDrain::Runner(runner))) => run_engine(*runner, &mut lease, &mut orders).await,
                Ok(Some(CreatedDrain::Over(outcome))) => LeasedRunEnd::Ended(outcome),
                Ok(None) => LeasedRunEnd::Lost,
                Err(error) => {
                    lease.release().await;
                    return Err(error);
                }
            };
            match end {
                LeasedRunEnd::Ended(outcome) => {
                    lease.release().await;
                    return Ok(outcome);
                }
                // The engine is dropped; the checkpoint on the node says where to continue.
                LeasedRunEnd::Lost => tracing::warn!(
                    node = self.node,
                    "the node's Lease could not be renewed: nothing is evicted until it is"
                ),
            }
        }
    }

    /// The Lease; or the outcome of a drain that was ended before it began.
    async fn acquire(&self, orders: &mut watch::Receiver<DrainOrders>) -> Result<HeldLease, Option<Outcome>> {
        let is_taken = AtomicBool::new(false);
        let drain = LeasedDrain::of(self.factory.request());
        let take = self.leases.take(&self.node, &drain, |holder| {
            is_taken.store(true, Ordering::Relaxed);
            self.factory.waiting_for(holder);
        });
        tokio::pin!(take);
        // A drain that had begun when it was called off is ended in order, under the Lease.
        let mut ends_under_lease = false;
        loop {
            let time_left = self.time_left(&orders.borrow(), is_taken.load(Ordering::Relaxed));
            if time_left.is_some_and(|time_left| time_left.is_zero()) {
                return Err(Some(self.factory.deadline_passed().await));
            }
            tokio::select! {
                biased;
                changed = orders.changed() => if changed.is_err() {
                    return Err(None);
                },
                lease = &mut take => return Ok(lease),
                // The holder and the state of the node may have changed by then.
                () = sleep(time_left.unwrap_or(RECHECK).min(RECHECK)) => continue,
            }
            let called_off = orders.borrow_and_update().called_off();
            if let Some(outcome) = called_off.filter(|_| !ends_under_lease) {
                if !self.factory.has_begun() {
                    self.factory.called_off(&outcome);
                    return Err(Some(outcome));
                }
                ends_under_lease = true;
            }
        }
    }

    /// How long to wait for the Lease; `None`: without limit. `is_taken`: another process was seen to hold it.
    fn time_left(&self, orders: &DrainOrders, is_taken: bool) -> Option<Duration> {
        let deadline = orders.deadline(self.factory.request().deadline)?;
        let wait_after_deadline = self.factory.wait_after_deadline()?;
        // If no other process holds the Lease, the drain itself reports a deadline that has passed.
        let wait_after_deadline = if is_taken {
            wait_after_deadline
        } else {
            wait_after_deadline + FIRST_ATTEMPT
        };
        let end = deadline + wait_after_deadline;
        Some(end.since(self.factory.clock().now()))
    }
}

/// Creates the drain; `None`: the Lease was lost meanwhile.
async fn create<B: DrainFactory>(
    factory: &mut B,
    lease: &mut HeldLease,
    orders: &mut watch::Receiver<DrainOrders>,
) -> Result<Option<CreatedDrain>, B::Error> {
    let known = orders.borrow().clone();
    let record = lease.record().clone();
    let created = factory.create(&known, &record);
    tokio::pin!(created);
    tokio::select! {
        biased;
        () = lease.lost() => Ok(None),
        () = closed(orders) => Ok(Some(CreatedDrain::Over(None))),
        created = &mut created => created.map(Some),
    }
}

async fn run_engine(
    runner: EngineRunner,
    lease: &mut HeldLease,
    orders: &mut watch::Receiver<DrainOrders>,
) -> LeasedRunEnd {
    let runner = runner.run(orders.clone());
    tokio::pin!(runner);
    // A lost Lease comes before every event.
    tokio::select! {
        biased;
        () = lease.lost() => LeasedRunEnd::Lost,
        () = closed(orders) => LeasedRunEnd::Ended(None),
        outcome = &mut runner => LeasedRunEnd::Ended(outcome),
    }
}
