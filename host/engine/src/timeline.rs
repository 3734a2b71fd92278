//! One time line for everything that is timed together. The engine never reads a clock: its driver reads both clocks of
//! the machine and asks a time line what moment that is.
//!
//! A wall clock can be set at any time, backward and forward; a steady clock only goes forward, but does not know what
//! time it is. A time line begins at what the wall clock shows at one moment and then goes as the steady clock goes, so no
//! timer stands still and no deadline comes early when the wall clock is set.

use core::time::Duration;

use crate::Time;

/// Both clocks are read one after the other and in whole milliseconds: a smaller difference is no step.
const SAME: Duration = Duration::from_millis(500);

/// What both clocks of a machine show at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock.
    pub wall: Time,
    /// The steady clock, since any moment that stays the same.
    pub steady: Duration,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    origin: Time,
    begun: Duration,
}

impl Timeline {
    /// A time line that shows now what the wall clock shows.
    pub const fn starting(reading: Reading) -> Self {
        Self {
            origin: reading.wall,
            begun: reading.steady,
        }
    }

    /// The moment of a reading. It never goes back, whatever becomes of the wall clock.
    pub fn now(self, reading: Reading) -> Time {
        self.origin + reading.steady.saturating_sub(self.begun)
    }

    /// The moment at which the wall clock will show `wall`, or showed it, unless it is set again. It is another one
    /// after the clock was set: a deadline that others keep as a wall time is translated once, when it is first seen.
    pub fn moment_of_wall(self, wall: Time, reading: Reading) -> Time {
        moved(wall, reading.wall, self.now(reading))
    }

    /// What the wall clock will show at `moment`, or showed, unless it is set again: for readers elsewhere.
    pub fn wall_at(self, moment: Time, reading: Reading) -> Time {
        moved(moment, self.now(reading), reading.wall)
    }

    /// The same moment as `moment` of another time line of this machine.
    pub fn moment_of_line(self, moment: Time, other: Self, reading: Reading) -> Time {
        moved(moment, other.now(reading), self.now(reading))
    }
}

/// A moment of a clock that shows `from` now, by a clock that shows `to` now.
fn moved(moment: Time, from: Time, to: Time) -> Time {
    let (ahead, behind) = (to.since(from), from.since(to));
    if ahead.max(behind) < SAME {
        moment
    } else {
        moment + ahead - behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wall_secs: u64, steady_secs: u64) -> Reading {
        Reading {
            wall: Time::from_millis(wall_secs * 1000),
            steady: Duration::from_secs(steady_secs),
        }
    }

    fn secs(time: Time) -> u64 {
        time.as_millis() / 1000
    }

    #[test]
    fn it_starts_at_the_wall_clock_and_advances_only_with_the_monotonic_clock() {
        let line = Timeline::starting(reading(10_000, 50));
        assert_eq!(secs(line.now(reading(10_000, 50))), 10_000);
        assert_eq!(secs(line.now(reading(10_007, 57))), 10_007);
        assert_eq!(secs(line.now(reading(13_607, 58))), 10_008, "set forward");
        assert_eq!(secs(line.now(reading(6_407, 59))), 10_009, "set back");
        assert_eq!(secs(line.now(reading(10_000, 40))), 10_000, "never back");
    }

    #[test]
    fn wall_clock_times_are_translated_by_the_current_wall_clock() {
        let line = Timeline::starting(reading(10_000, 0));
        let back = reading(6_405, 5);
        assert_eq!(
            secs(line.moment_of_wall(Time::from_millis(6_465_000), back)),
            10_065
        );
        assert_eq!(secs(line.wall_at(Time::from_millis(10_065_000), back)), 6_465);
        let forward = reading(13_605, 5);
        assert_eq!(
            secs(line.moment_of_wall(Time::from_millis(13_665_000), forward)),
            10_065
        );
        assert_eq!(
            secs(line.moment_of_wall(Time::from_millis(0), forward)),
            0,
            "long past"
        );
        let other = Timeline::starting(forward);
        assert_eq!(
            secs(other.moment_of_line(Time::from_millis(10_065_000), line, forward)),
            13_665
        );
    }

    #[test]
    fn milliseconds_between_two_readings_are_not_a_step() {
        let line = Timeline::starting(reading(10_000, 0));
        let jitter = Reading {
            wall: Time::from_millis(10_004_999),
            steady: Duration::from_secs(5),
        };
        let whole = Time::from_millis(20_000_000);
        assert_eq!(line.moment_of_wall(whole, jitter), whole);
        assert_eq!(line.wall_at(whole, jitter), whole);
    }
}
