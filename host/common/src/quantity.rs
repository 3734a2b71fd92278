//! Quantities of the API, such as `500m`, `1.5Gi` and `1e3`.

/// Converts an amount of a resource: `cpu` to thousandths, everything else to whole units, rounded up. `None`: it is not a
/// quantity.
pub fn quantity(resource: &str, text: &str) -> Option<u64> {
    parse(text, if resource == "cpu" { 3 } else { 0 })
}

/// More digits than any quantity that fits into 64 bits.
const DIGITS: u32 = 30;

/// Converts a quantity to units of `10^-decimals`, rounded up: `decimals` is 3 for thousandths. Quantities that do not fit
/// become the largest number. `None`: it is not a quantity, or negative.
fn parse(text: &str, decimals: i32) -> Option<u64> {
    let end = text.find(|digit: char| !digit.is_ascii_digit() && digit != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    let places = i32::try_from(fraction.len()).ok()?;
    let (tens, twos) = exponents(suffix)?;
    let digits: u128 = digits.parse().ok()?;
    let exponent = tens.checked_sub(places)?.checked_add(decimals)?;
    let scaled = digits.saturating_mul(1_u128.checked_shl(twos)?);
    let power = 10_u128.checked_pow(exponent.unsigned_abs().min(DIGITS))?;
    let value = match exponent {
        0.. => scaled.saturating_mul(power),
        _ => scaled.div_ceil(power),
    };
    Some(u64::try_from(value).unwrap_or(u64::MAX))
}

/// The powers of ten and of two that a suffix means.
fn exponents(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        exponent => (exponent.strip_prefix(['e', 'E'])?.parse().ok()?, 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_of_the_api_is_read() {
        let whole = [
            ("0", 0),
            ("1", 1),
            ("1.5", 2),
            ("1k", 1000),
            ("1Ki", 1024),
            ("1.5Gi", 1_610_612_736),
            ("100m", 1),
            ("1e3", 1000),
            ("1E3", 1000),
            ("1E", 1_000_000_000_000_000_000),
            ("12e-1", 2),
            ("1n", 1),
            (".5", 1),
            ("5.", 5),
        ];
        for (text, value) in whole {
            assert_eq!(parse(text, 0), Some(value), "{text}");
        }
        for (text, value) in [
            ("500m", 500),
            ("2", 2000),
            ("0.1", 100),
            ("1u", 1),
            ("1.0005", 1001),
        ] {
            assert_eq!(parse(text, 3), Some(value), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_the_largest_number_and_the_rest_is_none() {
        for text in ["16Ei", "99999999999999999999E", "1e25"] {
            assert_eq!(parse(text, 0), Some(u64::MAX), "{text}");
        }
        for text in ["", "-1", "Gi", "1Xi", "1e", "1e1.5", "1.2.3", "+1", "1 k"] {
            assert_eq!(parse(text, 0), None, "{text}");
        }
    }
}
