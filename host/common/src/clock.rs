//! The clock. The rest of the driver uses it, so that a test can control the time.
//!
//! All timing uses [`Clock::now`], which no change of the wall clock moves. Times that other programs read or write are
//! wall-clock times: [`Clock::wall`] for the present, [`Clock::wall_at`] and [`Clock::moment_of_wall`] for other
//! moments.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scupper_engine::{Reading, Time, Timeline, whole_millis};
use tokio::time::Instant;

/// A wall-clock time as RFC 3339, with milliseconds.
pub fn rfc3339(time: Time) -> String {
    format!("{:.3}", timestamp(time))
}

/// The same in whole seconds, for a time that is not known any better.
pub fn rfc3339_in_seconds(time: Time) -> String {
    format!("{:.0}", timestamp(time))
}

fn timestamp(time: Time) -> jiff::Timestamp {
    let millis = i64::try_from(time.as_millis()).ok();
    let moment = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    moment.unwrap_or_default()
}

/// The clock of the driver. Sleeping uses tokio's clock, which tests pause and advance; a test's clock follows it.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's, on one time line for the whole process.
    System,
    /// The machine's, on a time line that began later: see [`Clock::anchored`].
    Anchored(Timeline),
    /// Starts at a moment and advances with tokio's clock: for tests, and for a cluster that was saved at that moment.
    Test(Timeline, TestHands),
    /// That of a simulation, which sets it.
    Simulated(SimulatedTime),
}

/// The state of a test's clock. Its copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct TestHands {
    origin: Time,
    /// The time of `origin`, by tokio's clock.
    started: Instant,
    /// The offset of the wall clock, in milliseconds.
    offset: &'static AtomicI64,
}

/// The time of a simulation: its wall clock and its timers agree.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedTime(&'static AtomicU64);

impl Clock {
    /// The clock of a simulation that begins at `now`. It keeps eight bytes for ever.
    pub fn simulated(now: Time) -> Self {
        Self::Simulated(SimulatedTime(Box::leak(Box::new(AtomicU64::new(
            now.as_millis(),
        )))))
    }

    /// Sets the clock of a simulation; any other goes by itself.
    pub fn set_simulated(&self, now: Time) {
        if let Self::Simulated(time) = self {
            time.0.store(now.as_millis(), Ordering::Relaxed);
        }
    }

    /// A clock that shows `origin` now and advances with tokio's clock.
    pub fn starting_at(origin: Time) -> Self {
        let hands = TestHands {
            origin,
            started: Instant::now(),
            // Tests make few clocks, and a clock must be easy to copy.
            offset: Box::leak(Box::default()),
        };
        Self::Test(Timeline::starting(hands.reading()), hands)
    }

    /// The current time. Never goes back, and does not jump when the wall clock is set.
    pub fn now(&self) -> Time {
        self.line().now(self.reading())
    }

    /// The wall-clock time: for other programs, never for a timer.
    pub fn wall(&self) -> Time {
        self.reading().wall
    }

    /// The same clock on a time line that begins now, at the current wall-clock time, so that earlier changes of the
    /// wall clock do not affect work that begins long after the process. Moments of other time lines go through
    /// [`Clock::moment_of`].
    #[must_use]
    pub fn anchored(&self) -> Self {
        let line = Timeline::starting(self.reading());
        match self {
            Self::System | Self::Anchored(_) => Self::Anchored(line),
            Self::Test(_, hands) => Self::Test(line, *hands),
            Self::Simulated(time) => Self::Simulated(*time),
        }
    }

    /// The moment of a wall-clock time, by the current setting of the wall clock. To be done once for each deadline.
    pub fn moment_of_wall(&self, wall: Time) -> Time {
        self.line().moment_of_wall(wall, self.reading())
    }

    /// The wall-clock time of a moment, by the current setting of the wall clock.
    pub fn wall_at(&self, moment: Time) -> Time {
        self.line().wall_at(moment, self.reading())
    }

    /// The same moment as `moment` of another clock of this machine.
    pub fn moment_of(&self, other: &Self, moment: Time) -> Time {
        self.line().moment_of_line(moment, other.line(), self.reading())
    }

    /// Changes a test's wall clock by this many milliseconds. Has no effect on the machine's clock.
    pub fn step_wall(&self, millis: i64) {
        if let Self::Test(_, hands) = self {
            hands.offset.fetch_add(millis, Ordering::Relaxed);
        }
    }

    fn reading(&self) -> Reading {
        match self {
            Self::System | Self::Anchored(_) => machine(),
            Self::Test(_, hands) => hands.reading(),
            Self::Simulated(time) => time.reading(),
        }
    }

    fn line(&self) -> Timeline {
        static PROCESS: OnceLock<Timeline> = OnceLock::new();
        match self {
            Self::System => *PROCESS.get_or_init(|| Timeline::starting(machine())),
            Self::Anchored(line) | Self::Test(line, _) => *line,
            Self::Simulated(time) => Timeline::starting(time.reading()),
        }
    }
}

impl SimulatedTime {
    fn reading(self) -> Reading {
        let now = self.0.load(Ordering::Relaxed);
        Reading {
            wall: Time::from_millis(now),
            steady: Duration::from_millis(now),
        }
    }
}

impl TestHands {
    fn reading(self) -> Reading {
        let steady = in_millis(self.started.elapsed());
        let wall = (self.origin + steady).as_millis();
        Reading {
            wall: Time::from_millis(wall.saturating_add_signed(self.offset.load(Ordering::Relaxed))),
            steady,
        }
    }
}

/// Both clocks of the machine. The monotonic one stands still while the machine is suspended, as timers do.
fn machine() -> Reading {
    static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
    let steady = BEGUN.get_or_init(std::time::Instant::now).elapsed();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Reading {
        wall: Time::from_millis(whole_millis(wall)),
        steady: in_millis(steady),
    }
}

/// Leaves out what is less than a millisecond, as [`Time`] does: time lines that begin at different moments stay the same
/// distance apart.
fn in_millis(span: Duration) -> Duration {
    Duration::from_millis(whole_millis(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn at(secs: u64) -> Time {
        Time::from_millis(secs * 1000)
    }

    #[tokio::test(start_paused = true)]
    async fn setting_the_wall_clock_moves_no_timer() {
        let clock = Clock::starting_at(at(100_000));
        for step in [HOUR, -3 * HOUR, 2 * HOUR] {
            let before = clock.now();
            clock.step_wall(step);
            assert_eq!(clock.now(), before, "set by {step} ms");
            tokio::time::advance(Duration::from_secs(5)).await;
            assert_eq!(clock.now(), before + Duration::from_secs(5), "set by {step} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn timestamps_for_others_are_wall_clock_times() {
        let clock = Clock::starting_at(at(100_000));
        clock.step_wall(-HOUR);
        assert_eq!(clock.wall(), at(96_400));
        assert_eq!(clock.wall_at(at(100_060)), at(96_460));
        assert_eq!(clock.moment_of_wall(at(96_460)), at(100_060));
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_time_line_begins_at_the_wall_and_knows_the_moments_of_the_first() {
        let first = Clock::starting_at(at(100_000));
        first.step_wall(HOUR);
        let second = first.anchored();
        assert_eq!(second.now(), at(103_600));
        assert_eq!(second.moment_of(&first, at(100_060)), at(103_660));
        first.step_wall(-HOUR);
        assert_eq!(second.now(), at(103_600), "it is not moved either");
        assert_eq!(second.wall(), at(100_000));
    }

    #[test]
    fn the_clock_of_a_simulation_shows_what_it_is_set_to() {
        let clock = Clock::simulated(Time::from_millis(1_000));
        let copy = clock;
        assert_eq!(
            (clock.now(), clock.wall()),
            (Time::from_millis(1_000), Time::from_millis(1_000))
        );
        copy.set_simulated(Time::from_millis(86_400_000));
        assert_eq!(
            (clock.now(), clock.wall()),
            (Time::from_millis(86_400_000), Time::from_millis(86_400_000))
        );
    }

    #[test]
    fn the_machines_clock_shows_the_wall_time_at_first() {
        let (now, wall) = (Clock::System.now(), Clock::System.wall());
        let apart = now.since(wall).max(wall.since(now));
        assert!(apart < Duration::from_secs(60), "{now:?} and {wall:?}");
        assert!(Clock::System.now() >= now);
    }
}
