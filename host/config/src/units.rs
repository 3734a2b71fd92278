//! Durations and quantities, as Kubernetes writes them.

use std::time::Duration;

/// `90s`, `30m`, `1h30m`, `500ms`; `0` is zero.
pub fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = number(rest)?;
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let span = number.checked_mul(millis).map(Duration::from_millis)?;
        total = total.checked_add(span)?;
        rest = tail;
    }
    Some(total)
}

/// `65536`, `64Ki`, `64Mi`, `1Gi`, `64k`, `64M`, `1G`: bytes.
pub fn quantity(text: &str) -> Option<u64> {
    let (number, unit) = number(text)?;
    let factor = match unit {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Bytes in the usual form: `64Mi` where that is exact.
pub(super) fn bytes(count: u64) -> String {
    for (unit, factor) in [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        if count >= factor && count.is_multiple_of(factor) {
            return format!("{}{unit}", count / factor);
        }
    }
    count.to_string()
}

/// A duration in the usual form: in the largest unit in which it is whole.
pub(super) fn millis(count: u64) -> String {
    if count == 0 {
        return "0".to_owned();
    }
    for (unit, factor) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if count >= factor && count.is_multiple_of(factor) {
            return format!("{}{unit}", count / factor);
        }
    }
    format!("{count}ms")
}

/// The digits at the beginning, and the rest.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kubernetes_writes_them() {
        let millis = |text| duration(text).map(|span| span.as_millis());
        assert_eq!(millis("90s"), Some(90_000));
        assert_eq!(millis("30m0s"), Some(1_800_000));
        assert_eq!(millis("1h30m"), Some(5_400_000));
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!(millis("0"), Some(0));
        for wrong in [
            "",
            "5",
            "m",
            "-5m",
            "5 m",
            "5d",
            "1.5h",
            "99999999999999999999s",
            "s5",
            "5s5",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        assert_eq!(quantity("64Mi"), Some(64 << 20));
        assert_eq!(quantity("64M"), Some(64_000_000));
        assert_eq!(quantity("1Gi"), Some(1 << 30));
        assert_eq!(quantity("4k"), Some(4_000));
        assert_eq!(quantity("65536"), Some(65_536));
        for wrong in ["", "Mi", "-1", "1.5Gi", "64mi", "64 Mi", "64MiB", "99999999999Gi"] {
            assert_eq!(quantity(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn units_survive_a_round_trip() {
        for count in [0, 1, 1_000, 1_024, 65_536, 3 << 20, (1 << 30) + 1] {
            assert_eq!(quantity(&bytes(count)), Some(count));
        }
        for count in [0, 1, 999, 1_000, 90_000, 3_600_000, 3_600_001] {
            assert_eq!(duration(&millis(count)), Some(Duration::from_millis(count)));
        }
    }
}
