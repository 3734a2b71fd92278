//! Runs drives of one node while its lease is ours, and stands by while it is not. It decides nothing about the drain.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scupper_engine::{Event, Outcome, Request, Time};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::node_leases::{Seat, Seats};
use crate::AppError;
use crate::runner::{Drive, ORDERS};
use scupper_common::clock::Clock;

/// Whether the deadline ends the waiting is looked at again after so long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long the first try to take the lease may last beyond a deadline.
const FIRST_TRY: Duration = Duration::from_secs(5);

/// How a drive is begun.
pub(crate) trait Begin: Send + Sync {
    /// Begins, or goes on from what stands on the node: it is read now that the lease is ours, because whoever had it
    /// until now has written to the node. `orders`: what was ordered until now.
    fn begin(&mut self, orders: &[Event]) -> impl Future<Output = Result<Begun, AppError>> + Send;

    /// What is wanted.
    fn request(&self) -> &Request;

    /// What time it is.
    fn clock(&self) -> Clock;

    /// Something of it stands on the node, as far as is known without the lease, which must be brought to an end.
    fn has_begun(&self) -> bool;

    /// How long after the deadline the lease is still waited for; `None`: until it is ours, because what stands on the
    /// node must be put back.
    fn patience(&self) -> Option<Duration>;

    /// Somebody else is at the node.
    fn stands_by(&self, holder: &str);

    /// The deadline has passed before it could begin: says so, and how it ended.
    fn too_late(&self) -> impl Future<Output = Outcome> + Send;
}

/// What a begin came to.
pub(crate) enum Begun {
    /// There is something to be done.
    Drive(Box<Drive>),
    /// Nothing is to be done any more: it ended like this, where that is known.
    Over(Option<Outcome>),
}

/// One node, and whoever wants to work at it.
pub(crate) struct Guard<B> {
    pub(crate) seats: Seats,
    pub(crate) node: String,
    pub(crate) begin: B,
    /// What is ordered from the first.
    pub(crate) orders: Vec<Event>,
}

/// How a drive under a lease went.
enum Went {
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

impl<B: Begin> Guard<B> {
    /// Runs until the drain has ended, or until nobody holds `control` any more.
    pub(crate) async fn run(
        mut self,
        mut control: mpsc::Receiver<Event>,
    ) -> Result<Option<Outcome>, AppError> {
        let mut orders = std::mem::take(&mut self.orders);
        loop {
            let mut seat = match self.stand_by(&mut control, &mut orders).await {
                Ok(seat) => seat,
                Err(outcome) => return Ok(outcome),
            };
            let went = match begin(&mut self.begin, &mut seat, &mut control, &mut orders).await {
                Ok(Some(Begun::Drive(drive))) => drive_on(*drive, &mut seat, &mut control, &mut orders).await,
                Ok(Some(Begun::Over(outcome))) => Went::Ended(outcome),
                Ok(None) => Went::Lost,
                Err(error) => {
                    seat.release().await;
                    return Err(error);
                }
            };
            match went {
                Went::Ended(outcome) => {
                    seat.release().await;
                    return Ok(outcome);
                }
                // Nothing of the drive goes on; what it was at stands on the node.
                Went::Lost => tracing::warn!(
                    node = self.node,
                    "the node's Lease could not be renewed: no pod is asked to leave until it is"
                ),
            }
        }
    }

    /// The seat; or an outcome, where nothing was begun and it is not wanted any more.
    async fn stand_by(
        &self,
        control: &mut mpsc::Receiver<Event>,
        orders: &mut Vec<Event>,
    ) -> Result<Seat, Option<Outcome>> {
        let is_taken = AtomicBool::new(false);
        let take = self.seats.take(&self.node, |holder| {
            is_taken.store(true, Ordering::Relaxed);
            self.begin.stands_by(holder);
        });
        tokio::pin!(take);
        loop {
            let left = self.time_left(orders, is_taken.load(Ordering::Relaxed));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Some(self.begin.too_late().await));
            }
            let order = tokio::select! {
                biased;
                order = control.recv() => order,
                seat = &mut take => return Ok(seat),
                // Who is at the node, and whether something stands there, may be another matter by then.
                () = sleep(left.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN)) => continue,
            };
            let outcome = match &order {
                None => return Err(None),
                Some(order) => called_off(order),
            };
            if outcome.is_some() && !self.begin.has_begun() {
                return Err(outcome);
            }
            if let Some(order) = order {
                remember(orders, &order);
            }
        }
    }

    /// How long it may stand by; `None`: until the lease is ours. `is_taken`: another process was seen to have it.
    fn time_left(&self, orders: &[Event], is_taken: bool) -> Option<Duration> {
        let deadline = deadline(orders, self.begin.request().deadline)?;
        let patience = self.begin.patience()?;
        // A deadline that has passed is the drain's own to tell, where nobody else is at the node.
        let patience = if is_taken { patience } else { patience + FIRST_TRY };
        let end = deadline + patience.into();
        Some(end.since(self.begin.clock().now()).into())
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
async fn begin<B: Begin>(
    begin: &mut B,
    seat: &mut Seat,
    control: &mut mpsc::Receiver<Event>,
    orders: &mut Vec<Event>,
) -> Result<Option<Begun>, AppError> {
    let known = orders.clone();
    let begun = begin.begin(&known);
    tokio::pin!(begun);
    loop {
        tokio::select! {
            biased;
            () = seat.lost() => return Ok(None),
            order = control.recv() => match order {
                Some(order) => remember(orders, &order),
                None => return Ok(Some(Begun::Over(None))),
            },
            begun = &mut begun => return begun.map(Some),
        }
    }
}

async fn drive_on(
    drive: Drive,
    seat: &mut Seat,
    control: &mut mpsc::Receiver<Event>,
    known: &mut Vec<Event>,
) -> Went {
    let (orders, inbox) = mpsc::channel(ORDERS);
    for order in known.iter() {
        // There is room: few orders are worth remembering.
        orders.try_send(order.clone()).unwrap_or_default();
    }
    let drive = drive.run(inbox);
    tokio::pin!(drive);
    loop {
        // Whether it is still ours comes before anything that would follow from an event.
        tokio::select! {
            biased;
            () = seat.lost() => return Went::Lost,
            order = control.recv(), if orders.capacity() > 0 => match order {
                Some(order) => {
                    remember(known, &order);
                    // A drive that is over takes no orders; its end is on its way to us.
                    orders.try_send(order).unwrap_or_default();
                }
                None => return Went::Ended(None),
            },
            outcome = &mut drive => return Went::Ended(outcome),
        }
    }
}

/// What was ordered counts for every drive that follows, too. Of deadlines the last one does.
fn remember(orders: &mut Vec<Event>, order: &Event) {
    let same = std::mem::discriminant(order);
    orders.retain(|known| std::mem::discriminant(known) != same);
    orders.push(order.clone());
}
