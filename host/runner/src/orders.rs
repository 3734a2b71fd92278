//! All orders given to a drain so far, merged into one value. Each engine reads the whole value when it starts, also the
//! engine that starts after a lost Lease. Nothing is queued, and nothing is replayed.

use scupper_engine::{Event, Outcome, Time};
use tokio::sync::watch;

/// All orders to one drain that hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainOrders {
    /// The deadline, once it was moved.
    deadline: Option<MovedDeadline>,
    /// The first order that ends the drain. No later order takes it back.
    end: Option<EndOrder>,
    paused: bool,
}

/// The new deadline; `None`: as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovedDeadline(Option<Time>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum EndOrder {
    Cancel { reason: String },
    Lost { reason: String },
    Expire(Time),
}

impl DrainOrders {
    /// The request ended before its drain began.
    pub fn ended_elsewhere(reason: String) -> Self {
        let mut orders = Self::default();
        orders.lose(reason);
        orders
    }

    /// The request is withdrawn.
    pub fn cancel(&mut self, reason: String) {
        self.end.get_or_insert(EndOrder::Cancel { reason });
    }

    /// The request ended elsewhere.
    pub fn lose(&mut self, reason: String) {
        self.end.get_or_insert(EndOrder::Lost { reason });
    }

    /// Moves the deadline. One that has passed at `now` ends the drain, also if a later one follows at once.
    pub fn move_deadline(&mut self, deadline: Option<Time>, now: Time) {
        match deadline {
            Some(deadline) if deadline <= now => {
                self.end.get_or_insert(EndOrder::Expire(deadline));
            }
            _ => self.deadline = Some(MovedDeadline(deadline)),
        }
    }

    /// Nothing more is evicted: the driver is about to stop.
    pub const fn pause(&mut self) {
        self.paused = true;
    }

    /// The deadline of a request that began with `first`.
    pub fn deadline(&self, first: Option<Time>) -> Option<Time> {
        match self.end {
            Some(EndOrder::Expire(deadline)) => Some(deadline),
            _ => self.deadline.map_or(first, |MovedDeadline(deadline)| deadline),
        }
    }

    /// The outcome of a drain that is called off before it begins.
    pub fn called_off(&self) -> Option<Outcome> {
        match self.end.clone()? {
            EndOrder::Cancel { reason } => Some(Outcome::Cancelled { reason }),
            EndOrder::Lost { reason } => Some(Outcome::Lost { reason }),
            EndOrder::Expire(_) => None,
        }
    }

    /// The events for an engine that knows the orders `known`.
    pub fn events_since(&self, known: &Self) -> Vec<Event> {
        let paused = (self.paused && !known.paused).then_some(Event::Pause);
        let deadline = self.deadline.filter(|_| self.deadline != known.deadline);
        let deadline = deadline.map(|MovedDeadline(deadline)| Event::Deadline(deadline));
        let end = self.end.clone().filter(|_| known.end.is_none());
        let end = end.map(|end| match end {
            EndOrder::Cancel { reason } => Event::Cancel { reason },
            EndOrder::Lost { reason } => Event::Lost { reason },
            EndOrder::Expire(deadline) => Event::Deadline(Some(deadline)),
        });
        // The engine looks at its deadline before it hears of a cancel: that deadline must be the newest.
        paused.into_iter().chain(deadline).chain(end).collect()
    }
}

/// Waits until no further order can come: the drain is to stop where it is.
pub async fn closed(orders: &mut watch::Receiver<DrainOrders>) {
    while orders.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(60_000);

    fn later(seconds: u64) -> Option<Time> {
        Some(Time::from_millis(NOW.as_millis() + seconds * 1_000))
    }

    fn cancel(reason: &str) -> Event {
        Event::Cancel {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_new_engine_receives_everything_that_holds() {
        let mut orders = DrainOrders::default();
        assert_eq!(orders.events_since(&DrainOrders::default()), []);
        orders.move_deadline(later(10), NOW);
        orders.pause();
        orders.move_deadline(later(20), NOW);
        orders.cancel("withdrawn".to_owned());
        assert_eq!(
            orders.events_since(&DrainOrders::default()),
            [Event::Pause, Event::Deadline(later(20)), cancel("withdrawn")]
        );
        assert_eq!(orders.deadline(later(5)), later(20));
    }

    #[test]
    fn an_engine_that_runs_receives_only_what_is_new() {
        let mut orders = DrainOrders::default();
        orders.move_deadline(later(10), NOW);
        let known = orders.clone();
        orders.pause();
        assert_eq!(orders.events_since(&known), [Event::Pause]);
        let known = orders.clone();
        orders.move_deadline(None, NOW);
        assert_eq!(orders.events_since(&known), [Event::Deadline(None)]);
        assert_eq!(orders.deadline(later(5)), None, "it was lifted");
        assert_eq!(orders.events_since(&orders.clone()), []);
    }

    #[test]
    fn the_first_order_that_ends_a_drain_stays() {
        let mut orders = DrainOrders::default();
        orders.cancel("first".to_owned());
        orders.lose("second".to_owned());
        orders.move_deadline(later(0), NOW);
        assert_eq!(orders.events_since(&DrainOrders::default()), [cancel("first")]);
        let reason = "first".to_owned();
        assert_eq!(orders.called_off(), Some(Outcome::Cancelled { reason }));
        let lost = DrainOrders::ended_elsewhere("gone".to_owned());
        let reason = "gone".to_owned();
        assert_eq!(lost.called_off(), Some(Outcome::Lost { reason }));
    }

    #[test]
    fn a_deadline_that_has_passed_ends_the_drain_whatever_is_ordered_before_the_engine_hears_of_it() {
        let mut orders = DrainOrders::default();
        orders.move_deadline(later(0), NOW);
        orders.move_deadline(later(300), NOW);
        orders.cancel("too late".to_owned());
        let events = orders.events_since(&DrainOrders::default());
        assert_eq!(events.last(), Some(&Event::Deadline(later(0))), "{events:?}");
        assert_eq!(orders.deadline(later(300)), later(0));
        assert_eq!(orders.called_off(), None, "its deadline ended it");
    }

    #[tokio::test]
    async fn orders_are_closed_once_their_sender_is_gone() {
        let (sender, mut orders) = watch::channel(DrainOrders::default());
        sender.send_modify(DrainOrders::pause);
        drop(sender);
        closed(&mut orders).await;
        assert_eq!(
            orders.borrow().events_since(&DrainOrders::default()),
            [Event::Pause]
        );
    }
}
