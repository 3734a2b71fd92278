//! Values in scenarios: durations, patterns, and objects that may also be written as one text.

use std::fmt;
use std::time::Duration;

use scupper_engine::Time;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A duration: `500ms`, `10s`, `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScenarioDuration(pub(super) Duration);

impl<'de> Deserialize<'de> for ScenarioDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let span = scupper_config::duration(&text);
        span.map(Self)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a duration: write 500ms, 10s or 1h30m")))
    }
}

/// A moment in UTC: `2026-11-23T10:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScenarioTime(pub(super) Time);

impl<'de> Deserialize<'de> for ScenarioTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let time: Option<jiff::Timestamp> = text.parse().ok();
        let millis = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        millis
            .map(|millis| Self(Time::from_millis(millis)))
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a time: write 2026-11-23T10:00:00Z")))
    }
}

/// A text in which `*` matches anything.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub(super) struct Text(pub(super) String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text matches a pattern in which `*` matches anything.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

/// Reads a text where others write a map.
pub(super) struct TextOr<T, F>(pub(super) F, pub(super) std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnOnce(String) -> T> Visitor<'de> for TextOr<T, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a map")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(self.0(text.to_owned()))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(serde::de::value::MapAccessDeserializer::new(map))
    }
}

/// Declares a shape that is one text or a map of fields.
macro_rules! text_or {
    ($(#[$doc:meta])* $name:ident, $fields:ty, $of:expr) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name(pub(super) $fields);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let visitor = crate::author::values::TextOr($of, std::marker::PhantomData);
                from.deserialize_any(visitor).map(Self)
            }
        }
    };
}
pub(super) use text_or;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in [
            ("", ""),
            ("a", "a"),
            ("*", ""),
            ("*", "a"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("*b*", "abc"),
            ("GET https://*/jobs", "GET https://a/b/jobs"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", "ab"),
            ("a*c", "ab"),
            ("a*bc", "ac"),
            ("*b", "abc"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
