//! Limits concurrent evictions to what keeps the API server busy: more would only wait in its queue, and all its other
//! clients would wait behind them. The knee is the server's throughput times the time that a request takes without a
//! queue, so requests in flight × unloaded time ÷ current time (Little's law). The limit is the knee and a few more, as
//! in the gradient and Vegas limiters of others. It is measured from the answers alone: this knows neither which drain
//! evicts nor how large the server is.
//!
//! The unloaded time is the hard part, because several drivers drain at once and do not know of each other. One that
//! comes later takes the queue of the others for the server's own time, allows itself more, and so does each that looks
//! after it. So all of them step back for a moment, and at the same moment: when the wall clock passes a multiple of a
//! period that follows from the answer times. Clocks that differ by more than an answer time cost gentleness, and some
//! fairness.
//!
//! Crates for this (`tower-acc`, `tower-resilience-adaptive`, `congestion-limiter`) are layers that hold requests back in
//! front of the connection, where no cancel can withdraw them. The algorithms of the first can be used alone; but the
//! Vegas of all three takes a sample under load, or the least ever, for the unloaded time.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::Time;

/// The initial limit. Not more, because the first answers show the unloaded time.
const FIRST: usize = 2;
/// Maximum limit, more than any drain needs.
const MOST: usize = 64;
/// With so few in flight, requests wait for other clients' at most: what they take is the server's own time.
const ALONE: usize = 2;
/// While the unloaded time is measured, the limit is this part of what it was: below the knee wherever it is.
const STEP_BACK: usize = 3;
/// Number of answers that show the unloaded time.
const SAMPLES: usize = 4;
/// The unloaded time is measured about once in 20 to 40 answer times.
const PERIOD: u32 = 20;

/// The limit, and the measurements behind it.
#[derive(Debug)]
pub struct InFlight {
    limit: usize,
    /// No queue has been seen yet: the limit doubles with each round.
    is_new: bool,
    /// The time that a request takes without a queue.
    unloaded: Option<Duration>,
    /// How long the answers of this round took. A round has as many as may be in flight.
    round: Vec<Duration>,
    /// The limit was reached in this round: what was never used is not raised.
    is_reached: bool,
    /// The limit to return to, while the unloaded time is measured.
    stepped_back_from: Option<usize>,
    /// How long the answers of the last round took.
    usual: Duration,
    /// The wall-clock time of the last answer.
    last: Time,
    /// Counts cuts and steps back: a request that was sent before one says nothing about the new limit.
    era: u64,
    /// One clone for each request under way; a request that is given up drops its own.
    under_way: Arc<()>,
}

/// A request under way.
#[derive(Debug)]
pub struct Ticket {
    era: u64,
    _under_way: Arc<()>,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Answered after this time, with all the work done.
    After(Duration),
    /// Answered before the work was done: shows nothing about the time that it takes.
    Early,
    /// Not answered, or answered with "not now".
    Overloaded,
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            limit: FIRST,
            is_new: true,
            unloaded: None,
            round: Vec::new(),
            is_reached: false,
            stepped_back_from: None,
            usual: Duration::ZERO,
            last: Time::default(),
            era: 0,
            under_way: Arc::default(),
        }
    }
}

impl InFlight {
    /// Maximum number of concurrent requests; at least one.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Records the start of a request.
    pub fn sent(&mut self) -> Ticket {
        let under_way = Arc::clone(&self.under_way);
        self.is_reached |= Arc::strong_count(&under_way) > self.limit;
        Ticket {
            era: self.era,
            _under_way: under_way,
        }
    }

    /// Records its answer, at this wall-clock time.
    pub fn answered(&mut self, ticket: &Ticket, answered: Answered, now: Time) {
        let last = std::mem::replace(&mut self.last, now);
        if self.stepped_back_from.is_none() && has_passed(self.usual, last, now) {
            let limit = (self.limit / STEP_BACK).max(ALONE).min(self.limit);
            self.stepped_back_from = Some(self.limit);
            self.begin_era(limit);
        }
        if ticket.era != self.era {
            return;
        }
        match answered {
            Answered::After(time) => self.round.push(time),
            Answered::Early => {}
            Answered::Overloaded => {
                let limit = self.stepped_back_from.take().unwrap_or(self.limit);
                self.is_new = false;
                self.begin_era(limit / 2);
            }
        }
        if self.stepped_back_from.is_some() && self.round.len() >= self.limit.max(SAMPLES) {
            self.unloaded = self.median();
            self.usual = self.unloaded.unwrap_or(self.usual);
            let limit = self.stepped_back_from.take().unwrap_or(self.limit);
            self.begin_era(limit);
        } else if self.stepped_back_from.is_none() && self.round.len() >= self.limit {
            self.end_round();
        }
    }

    fn begin_era(&mut self, limit: usize) {
        self.limit = limit.clamp(1, MOST);
        self.era = self.era.saturating_add(1);
        self.round.clear();
        self.is_reached = false;
    }

    /// Sets the limit to the knee that the round shows, and a few more.
    fn end_round(&mut self) {
        let Some(time) = self.median() else {
            return;
        };
        self.round.clear();
        let is_reached = std::mem::take(&mut self.is_reached);
        self.usual = time;
        let unloaded = match self.unloaded {
            Some(known) if self.limit > ALONE => known.min(time),
            _ => time,
        };
        self.unloaded = Some(unloaded);
        let knee = in_proportion(self.limit, unloaded, time);
        // The usual number of requests that wait by chance grows with the square root of those at work.
        let few = 1 + self.limit.isqrt();
        self.is_new &= (self.limit - knee) * 2 <= few;
        let limit = knee + if self.is_new { self.limit } else { few };
        // One slow round may be a hiccup.
        let limit = limit.clamp(self.limit.div_ceil(2), MOST);
        if is_reached || limit < self.limit {
            self.limit = limit;
        }
    }

    /// The median of the round: a few pods with a slow webhook are not a slow server.
    fn median(&mut self) -> Option<Duration> {
        self.round.sort_unstable();
        self.round.get(self.round.len() / 2).copied()
    }
}

/// True if a multiple of the period has passed since `last`. The period is a power of two, so that the moments of a
/// longer one are among those of a shorter one.
fn has_passed(usual: Duration, last: Time, now: Time) -> bool {
    let millis = usual.saturating_mul(PERIOD).as_millis();
    let period = u64::try_from(millis).unwrap_or(u64::MAX >> 1).next_power_of_two();
    !usual.is_zero() && last.as_millis() / period != now.as_millis() / period
}

/// `limit` × `unloaded` ÷ `time`, to the nearest, and at most `limit`.
fn in_proportion(limit: usize, unloaded: Duration, time: Duration) -> usize {
    let work = unloaded.as_nanos().saturating_mul(limit as u128);
    let knee = work
        .saturating_add(time.as_nanos() / 2)
        .checked_div(time.as_nanos())
        .unwrap_or(u128::MAX);
    usize::try_from(knee).unwrap_or(usize::MAX).min(limit)
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
