//! The drain's own time, from the wall clock and the monotonic one.

use std::time::Duration;

use scupper_engine::{Reading, Time, Timeline};

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
