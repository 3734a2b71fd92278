//! Limits concurrent evictions by the API server's response time: one more while it keeps its speed, half as many when
//! it does not. It must not know which drain evicts, nor read a clock.

use std::time::Duration;

/// The initial limit: a server that can handle more shows it within a few answers.
const FIRST: usize = 8;
/// Maximum limit, more than any drain needs.
const MOST: usize = 64;
/// An answer is late if it takes four times the usual time plus this: a machine may be busy.
const TIMES: u32 = 4;
const LEEWAY: Duration = Duration::from_millis(500);
/// How slowly the usual time follows answers that take longer. It follows shorter ones at once.
const INERTIA: u32 = 8;

/// The limit, and the measurements behind it.
#[derive(Debug)]
pub(super) struct InFlight {
    limit: usize,
    /// Number of timely answers since the limit was last raised.
    in_time: usize,
    /// No answer has been late yet: each timely one raises the limit.
    is_new: bool,
    /// How often the limit was halved.
    cuts: u64,
    /// The response time without other requests of ours: the shortest seen, or the time of single requests.
    usual: Option<Duration>,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    cuts: u64,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// Answered after this time, whatever the answer.
    After(Duration),
    /// Not answered, or answered with "not now".
    Overloaded,
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            limit: FIRST,
            in_time: 0,
            is_new: true,
            cuts: 0,
            usual: None,
        }
    }
}

impl InFlight {
    /// Maximum number of concurrent requests; at least one.
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Records the start of a request.
    pub(super) const fn sent(&self) -> Ticket {
        Ticket { cuts: self.cuts }
    }

    /// Records its answer.
    pub(super) fn answered(&mut self, ticket: Ticket, answered: Answered) {
        let is_late = self.is_late(answered);
        // A request sent before the limit was halved says nothing about the new one.
        if ticket.cuts != self.cuts {
            return;
        }
        if is_late {
            self.limit = (self.limit / 2).max(1);
            self.cuts = self.cuts.saturating_add(1);
            (self.is_new, self.in_time) = (false, 0);
            return;
        }
        self.in_time += 1;
        if self.is_new || self.in_time >= self.limit {
            self.limit = (self.limit + 1).min(MOST);
            self.in_time = 0;
        }
    }

    fn is_late(&mut self, answered: Answered) -> bool {
        let Answered::After(time) = answered else {
            return true;
        };
        let usual = self.usual.unwrap_or(time);
        self.usual = Some(match time.checked_sub(usual) {
            // A server that has become slower by itself also answers single requests more slowly.
            Some(longer) if self.limit == 1 => usual + longer / INERTIA,
            Some(_) => usual,
            None => time,
        });
        time > usual.saturating_mul(TIMES).saturating_add(LEEWAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Answered = Answered::After(Duration::from_millis(10));
    const LATE: Answered = Answered::After(Duration::from_secs(2));

    /// This many rounds, each with as many concurrent requests as the limit allows.
    fn rounds(in_flight: &mut InFlight, count: usize, answered: impl Fn(usize) -> Answered) {
        for _ in 0..count {
            let at_once = in_flight.limit();
            let tickets: Vec<_> = (0..at_once).map(|_| in_flight.sent()).collect();
            for ticket in tickets {
                in_flight.answered(ticket, answered(at_once));
            }
        }
    }

    #[test]
    fn a_server_that_keeps_its_pace_gets_more_requests_within_a_few_rounds() {
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.limit(), 8);
        rounds(&mut in_flight, 2, |_| SOON);
        assert!(in_flight.limit() >= 32, "{in_flight:?}");
        rounds(&mut in_flight, 100, |_| SOON);
        assert_eq!(in_flight.limit(), MOST);
    }

    #[test]
    fn many_late_answers_of_one_round_halve_the_limit_once() {
        let mut in_flight = InFlight::default();
        rounds(&mut in_flight, 2, |_| SOON);
        let before = in_flight.limit();
        rounds(&mut in_flight, 1, |_| LATE);
        assert_eq!(in_flight.limit(), before / 2);
        for _ in 0..10 {
            rounds(&mut in_flight, 1, |_| Answered::Overloaded);
        }
        assert_eq!(in_flight.limit(), 1, "never none");
    }

    #[test]
    fn after_a_cut_the_limit_grows_by_one_a_round() {
        let mut in_flight = InFlight::default();
        rounds(&mut in_flight, 1, |_| SOON);
        rounds(&mut in_flight, 1, |_| Answered::Overloaded);
        let cut = in_flight.limit();
        rounds(&mut in_flight, 3, |_| SOON);
        assert_eq!(in_flight.limit(), cut + 3);
    }

    /// Each answer waits for all other requests in flight: 200 ms of work each, one after the other.
    #[test]
    fn a_server_that_answers_one_after_the_other_is_not_flooded() {
        let mut in_flight = InFlight::default();
        in_flight.answered(in_flight.sent(), Answered::After(Duration::from_millis(200)));
        let one_by_one = |at_once| {
            let at_once = u32::try_from(at_once).unwrap();
            Answered::After(Duration::from_millis(200) * at_once)
        };
        rounds(&mut in_flight, 50, one_by_one);
        assert!(in_flight.limit() <= 10, "{in_flight:?}");
    }

    /// A webhook that is added later and takes two seconds per request.
    #[test]
    fn the_pace_of_a_server_that_becomes_slower_is_learnt_again() {
        let mut in_flight = InFlight::default();
        rounds(&mut in_flight, 3, |_| SOON);
        rounds(&mut in_flight, 10, |_| LATE);
        rounds(&mut in_flight, 200, |_| LATE);
        assert!(in_flight.limit() > 8, "{in_flight:?}");
    }

    /// A webhook that takes two seconds per request does not mean that the server is overloaded.
    #[test]
    fn an_answer_that_always_takes_long_is_not_late() {
        let mut in_flight = InFlight::default();
        rounds(&mut in_flight, 3, |_| LATE);
        assert!(in_flight.limit() >= 32, "{in_flight:?}");
    }
}
