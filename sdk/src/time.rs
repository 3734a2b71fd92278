//! Times in messages and in the formats of other systems. A policy reads no clock: times come from its calls.

use std::time::Duration;

use crate::Timestamp;

const DAY: u64 = 86_400_000;

/// A moment to the minute. Unlike a remaining time it does not change a message at every step.
///
/// ```
/// assert_eq!(scupper_sdk::time::moment(1_800_000_000_000), "2027-01-15 08:00 UTC");
/// ```
pub fn moment(at: Timestamp) -> String {
    let (year, month, day) = date(at);
    let (hour, minute) = (at / 3_600_000 % 24, at / 60_000 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// A length of time, in the largest unit that fits.
///
/// ```
/// use std::time::Duration;
/// let texts = [90, 900, 7200].map(|seconds| scupper_sdk::time::length(Duration::from_secs(seconds)));
/// assert_eq!(texts, ["90s", "15m", "2h"]);
/// ```
pub fn length(time: Duration) -> String {
    match time.as_secs() {
        hours if hours > 0 && hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes > 0 && minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    }
}

/// The year, the month and the day in UTC. Years begin in March here, so that a leap day is the last of its year.
pub const fn date(at: Timestamp) -> (u64, u64, u64) {
    let days = at / DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn times_follow_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_800_000_000, "2027-01-15 08:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(moment(seconds * 1000), text);
        }
        // Beyond any real time, but still safe.
        assert!(moment(u64::MAX).ends_with(" UTC"));
    }
}
