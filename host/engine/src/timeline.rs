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
