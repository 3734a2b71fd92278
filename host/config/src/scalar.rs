//! The meaning of a scalar without quotes, by YAML's core schema: `no` is a text, and so is `0x10`.

/// The type of a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    Bool,
    Whole,
    Real,
    Text,
}

/// The type of a scalar without quotes.
pub(super) fn kind(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Nothing,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Kind::Bool,
        _ if whole(text).is_some() => Kind::Whole,
        _ if is_real(text) => Kind::Real,
        _ => Kind::Text,
    }
}

/// A whole number.
pub(super) fn whole(text: &str) -> Option<i64> {
    text.strip_prefix('+')
        .filter(|rest| !rest.starts_with(['+', '-']))
        .unwrap_or(text)
        .parse()
        .ok()
}

fn is_real(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    text.bytes().all(allowed)
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The value as JSON.
pub(super) fn to_json(text: &str) -> serde_json::Value {
    match kind(text) {
        Kind::Nothing => serde_json::Value::Null,
        Kind::Bool => text.eq_ignore_ascii_case("true").into(),
        Kind::Whole => whole(text).into(),
        Kind::Real => text.parse::<f64>().map_or_else(|_| text.into(), Into::into),
        Kind::Text => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_their_yaml_meaning() {
        let table = [
            (Kind::Nothing, &["", "~", "null"][..]),
            (Kind::Bool, &["true", "False"]),
            (Kind::Whole, &["0", "-1", "+7", "9223372036854775807"]),
            (Kind::Real, &["1.5", "1e3", "-0.5", "9223372036854775808"]),
            (
                Kind::Text,
                &[
                    "no", "yes", "0x10", "1_000", "1.2.3", "5s", "++1", "+-1", ".inf", ".", "-", "inf",
                    "1e999",
                ],
            ),
        ];
        for (expected, texts) in table {
            for text in texts {
                assert_eq!(kind(text), expected, "{text}");
            }
        }
    }
}
