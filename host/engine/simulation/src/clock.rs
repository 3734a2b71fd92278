//! The wall clock of the driver's machine, which a fault may set, and the time line of the running process. Everything
//! else in a world happens by the true time, which the API server's clock also shows.

use std::time::Duration;

use scupper_engine::{Drain, Event, Reading, Request, Time, Timeline, whole_millis};

use crate::world::{START, World};

/// See the module.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The offset of the wall clock from the true time.
    ahead: i64,
    /// The time line of the running process.
    line: Timeline,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let mut clock = Self {
            ahead: 0,
            line: Timeline::starting(Reading {
                wall: Time::from_millis(START),
                steady: Duration::ZERO,
            }),
        };
        clock.begin_process(START);
        clock
    }

    /// Sets the wall clock.
    pub(crate) const fn step(&mut self, millis: i64) {
        self.ahead += millis;
    }

    /// Another process starts.
    pub(crate) fn begin_process(&mut self, now: u64) {
        self.line = Timeline::starting(self.reading(now));
    }

    fn reading(&self, now: u64) -> Reading {
        Reading {
            wall: Time::from_millis(now.saturating_add_signed(self.ahead)),
            steady: Duration::from_millis(now),
        }
    }

    /// The current time, according to the process.
    pub(crate) fn now(&self, now: u64) -> Time {
        self.line.now(self.reading(now))
    }

    /// Converts a time of the API server to the process's time line.
    fn moment_of_wall(&self, now: u64, wall: Time) -> Time {
        self.line.moment_of_wall(wall, self.reading(now))
    }

    /// Converts a moment of the process to the true time.
    fn truly(&self, now: u64, moment: Time) -> u64 {
        let line = self.now(now);
        let (ahead, behind) = (whole_millis(moment.since(line)), whole_millis(line.since(moment)));
        (now + ahead).saturating_sub(behind)
    }
}

impl World {
    /// The current time, according to the running process.
    pub(crate) fn process_now(&self) -> Time {
        self.clock.now(self.now)
    }

    /// The true time at which the engine wants to be woken.
    pub(crate) fn timer(&self) -> Option<u64> {
        let timer = self.drain.as_ref().and_then(Drain::poll_timeout)?;
        Some(self.clock.truly(self.now, timer))
    }

    /// The request as the engine sees it, and as it truly is: the API server stores its deadline as a wall-clock time,
    /// which the process translates when it first sees it.
    pub(crate) fn requests_of_process(&self) -> (Request, Request) {
        let of = |deadline| Request {
            deadline,
            ..self.request.clone()
        };
        let (moment, truth) = self.deadlines_of_process(self.request.deadline);
        (of(moment), of(truth))
    }

    /// The same for an order.
    pub(crate) fn orders_of_process(&self, event: Event) -> (Event, Event) {
        match event {
            Event::Deadline(deadline) => {
                let (moment, truth) = self.deadlines_of_process(deadline);
                (Event::Deadline(moment), Event::Deadline(truth))
            }
            other => (other.clone(), other),
        }
    }

    fn deadlines_of_process(&self, wall: Option<Time>) -> (Option<Time>, Option<Time>) {
        let moment = wall.map(|wall| self.clock.moment_of_wall(self.now, wall));
        let truth = moment.map(|moment| Time::from_millis(self.clock.truly(self.now, moment)));
        (moment, truth)
    }
}
