//! Durations in Go's notation: `30m0s`, `1h30m`, `1.5s`.

use std::time::Duration;

use scupper_engine::whole_millis;

/// The units and their milliseconds. Longer names first, since `m` begins `ms`.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-6),
    ("us", 1e-3),
    ("µs", 1e-3),
    ("μs", 1e-3),
    ("ms", 1.0),
    ("s", 1e3),
    ("m", 6e4),
    ("h", 3.6e6),
];

/// Parses a duration. A negative one expires at once, so it counts as zero.
pub fn parse(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut millis = 0.0;
    while !rest.is_empty() || millis == 0.0 {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, unit) = rest.split_at(end);
        let (name, value) = UNITS.into_iter().find(|(name, _)| unit.starts_with(name))?;
        millis += number.parse::<f64>().ok()? * value;
        rest = unit.strip_prefix(name)?;
        if rest.is_empty() {
            break;
        }
    }
    Some(if negative {
        Duration::ZERO
    } else {
        Duration::from_millis(millis.round() as u64)
    })
}

/// Formats a duration as Go does, so that the server stores the text that we compare with.
pub fn format(span: Duration) -> String {
    let millis = whole_millis(span);
    if millis == 0 {
        return "0s".to_owned();
    }
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let seconds = format!("{}.{:03}", millis / 1000 % 60, millis % 1000);
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_s_forms_are_read() {
        for (text, millis) in [
            ("90s", 90_000),
            ("30m0s", 1_800_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1500),
            ("500ms", 500),
            ("1h0m0.25s", 3_600_250),
            ("0", 0),
            ("0s", 0),
            ("+5m", 300_000),
            ("-5m", 0),
            ("1500us", 2),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn other_forms_are_not() {
        for text in ["", "5", "m", "5 m", "5m ", "five", "1.2.3s", "5d", "-", "s5"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_survive_a_round_trip_and_print_as_go_prints_them() {
        for (millis, text) in [
            (0, "0s"),
            (500, "500ms"),
            (1500, "1.5s"),
            (60_000, "1m0s"),
            (300_000, "5m0s"),
            (3_600_000, "1h0m0s"),
            (5_400_010, "1h30m0.01s"),
            (600_000, "10m0s"),
        ] {
            assert_eq!(format(Duration::from_millis(millis)), text);
            assert_eq!(parse(text), Some(Duration::from_millis(millis)));
        }
    }
}
