//! Runs drives of one node while its lease is ours, and stands by while it is not. It decides nothing about the drain.

use scupper_engine::{Event, Outcome};
use tokio::sync::mpsc;

use super::seats::{Seat, Seats};
use crate::app::AppError;
use crate::app::drive::{Drive, ORDERS};

/// How a drive is begun.
pub(in crate::app) trait Begin: Send {
    /// Begins, or goes on from what stands on the node. `again`: somebody may have been at the node since it was looked
    /// at.
    fn begin(&mut self, again: bool) -> impl Future<Output = Result<Drive, AppError>> + Send;

    /// Something of it stands on the node, which must be brought to an end.
    fn has_begun(&self) -> bool;

    /// Somebody else is at the node.
    fn stands_by(&self, holder: &str);
}

/// One node, and whoever wants to work at it.
pub(in crate::app) struct Guard<B> {
    pub(in crate::app) seats: Seats,
    pub(in crate::app) node: String,
    pub(in crate::app) begin: B,
}

/// How a drive under a lease went.
enum Went {
    Ended(Option<Outcome>),
    /// The lease is not surely ours any more.
    Lost,
}

impl<B: Begin> Guard<B> {
    /// Runs until the drain has ended, or until nobody holds `control` any more.
    pub(in crate::app) async fn run(
        mut self,
        mut control: mpsc::Receiver<Event>,
    ) -> Result<Option<Outcome>, AppError> {
        let mut orders = Vec::new();
        let mut again = false;
        loop {
            let mut seat = match self.stand_by(&mut control, &mut orders).await {
                Ok(seat) => seat,
                Err(outcome) => return Ok(outcome),
            };
            let drive = self.begin.begin(again || seat.waited).await;
            let went = match drive {
                Ok(drive) => drive_on(drive, &mut seat, &mut control, &mut orders).await,
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
                    "the lease of the node could not be kept: no pod is asked to leave until it is ours again"
                ),
            }
            again = true;
        }
    }

    /// The seat; or an outcome, where nothing was begun and it is not wanted any more.
    async fn stand_by(
        &self,
        control: &mut mpsc::Receiver<Event>,
        orders: &mut Vec<Event>,
    ) -> Result<Seat, Option<Outcome>> {
        let take = self.seats.take(&self.node, |holder| self.begin.stands_by(holder));
        tokio::pin!(take);
        loop {
            let order = tokio::select! {
                biased;
                order = control.recv() => order,
                seat = &mut take => return Ok(seat),
            };
            let outcome = match &order {
                None => return Err(None),
                Some(Event::Cancel { reason }) => Some(Outcome::Cancelled {
                    reason: reason.clone(),
                }),
                Some(Event::Lost { reason }) => Some(Outcome::Lost {
                    reason: reason.clone(),
                }),
                Some(_) => None,
            };
            if outcome.is_some() && !self.begin.has_begun() {
                return Err(outcome);
            }
            if let Some(order) = order {
                remember(orders, &order);
            }
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
