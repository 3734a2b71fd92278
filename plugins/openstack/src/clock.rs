//! Converts the times of Keystone, Nova and HTTP to and from milliseconds since 1970. It never reads a clock.

use scupper_sdk::Timestamp;
use scupper_sdk::time::date;

const DAY: i64 = 86_400;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// `2026-11-21T13:49:58.000000`, in UTC, with or without fractions and `Z`.
pub(crate) fn iso(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    moment(year, month, day, (hour * 60 + minute) * 60 + second)
}

/// `Sat, 21 Nov 2026 13:49:58 GMT`, as in the header `Date`.
pub(crate) fn http_date(text: &str) -> Option<Timestamp> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)?;
    let year = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    moment(
        year,
        i64::try_from(month).ok()? + 1,
        day,
        (hour * 60 + minute) * 60 + second,
    )
}

/// `2026-11-21T13:49:58Z`
pub(crate) fn to_iso(at: Timestamp) -> String {
    let (year, month, day) = date(at);
    let seconds = at / 1000;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn moment(year: i64, month: i64, day: i64, second: i64) -> Option<Timestamp> {
    let seconds = days(year, month, day) * DAY + second;
    u64::try_from(seconds * 1000).ok()
}

/// Days since 1970-01-01, in years that begin in March so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_of_nova_keystone_and_http_agree() {
        let at = Some(1_795_268_998_000);
        assert_eq!(iso("2026-11-21T13:49:58.000000"), at);
        assert_eq!(iso("2026-11-21T13:49:58Z"), at);
        assert_eq!(http_date("Sat, 21 Nov 2026 13:49:58 GMT"), at);
        assert_eq!(to_iso(1_795_268_998_123), "2026-11-21T13:49:58Z");
    }

    #[test]
    fn leap_days_and_new_year_are_converted() {
        for text in [
            "2024-02-29T00:00:00Z",
            "2024-03-01T00:00:00Z",
            "2025-12-31T23:59:59Z",
            "2026-01-01T00:00:00Z",
            "1970-01-01T00:00:00Z",
        ] {
            assert_eq!(iso(text).map(to_iso).as_deref(), Some(text));
        }
    }

    #[test]
    fn invalid_times_are_none() {
        for text in ["", "soon", "2026-11-21", "21 Nov"] {
            assert_eq!((iso(text), http_date(text)), (None, None), "{text}");
        }
    }
}
