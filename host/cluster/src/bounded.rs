//! Decodes JSON of any form up to a bound: what exceeds it is read and dropped, so that an object of a stranger takes
//! little memory however large it is.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What each value takes besides its text.
const OF_VALUE: usize = 16;

/// What may still be kept of an object.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    exceeded: bool,
}

/// Decodes one value within a budget.
pub(super) struct Bounded<'a> {
    pub(super) budget: &'a mut Budget,
    /// The only keys that are kept of it, if it is a map; `None`: all.
    pub(super) keys: Option<&'static [&'static str]>,
}

impl Budget {
    pub(super) const fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            exceeded: false,
        }
    }

    /// Something did not fit.
    pub(super) const fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    /// What is left of it.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    fn takes(&mut self, text: usize) -> bool {
        match self.left.checked_sub(text.saturating_add(OF_VALUE)) {
            Some(left) if !self.exceeded => {
                self.left = left;
                true
            }
            _ => {
                self.exceeded = true;
                false
            }
        }
    }

    fn value(&mut self, text: usize, value: impl FnOnce() -> Value) -> Value {
        if self.takes(text) { value() } else { Value::Null }
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(self.budget.value(0, || value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.budget.value(0, || value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.budget.value(0, || value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(self.budget.value(0, || value.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(self.budget.value(text.len(), || text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while !self.budget.is_exceeded() {
            let next = Bounded {
                budget: self.budget,
                keys: None,
            };
            match seq.next_element_seed(next)? {
                Some(value) => all.push(value),
                None => return Ok(Value::Array(all)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let is_wanted = self.keys.is_none_or(|keys| keys.contains(&key.as_str()));
            if is_wanted && self.budget.takes(key.len()) {
                let value = Bounded {
                    budget: self.budget,
                    keys: None,
                };
                let value = map.next_value_seed(value)?;
                all.insert(key, value);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, bytes: usize, keys: Option<&'static [&'static str]>) -> (Value, bool) {
        let mut budget = Budget::new(bytes);
        let mut from = serde_json::Deserializer::from_str(text);
        let bounded = Bounded {
            budget: &mut budget,
            keys,
        };
        let value = bounded.deserialize(&mut from).unwrap();
        from.end().unwrap();
        (value, budget.is_exceeded())
    }

    #[test]
    fn what_fits_is_read_as_it_is() {
        let value = json!({"a": ["x", 1, -2, 1.5, true, null, {"b": []}], "c": ""});
        assert_eq!(read(&value.to_string(), 1000, None), (value, false));
        assert_eq!(read("null", 0, None), (Value::Null, false));
    }

    #[test]
    fn other_keys_cost_nothing() {
        let large = "x".repeat(10_000);
        let value = json!({"a": 1, "large": large, "more": {"a": [large]}});
        assert_eq!(
            read(&value.to_string(), 100, Some(&["a"])),
            (json!({"a": 1}), false)
        );
    }

    #[test]
    fn what_does_not_fit_is_passed_over_to_the_end() {
        let many = json!({"a": vec![""; 100_000], "b": {"c": "d"}});
        let (value, exceeded) = read(&many.to_string(), 1000, None);
        assert!(exceeded);
        assert!(value["a"].as_array().unwrap().len() <= 1000 / OF_VALUE);
        let long = json!(["x".repeat(2000), "y"]);
        assert_eq!(read(&long.to_string(), 1000, None), (json!([null]), true));
    }
}
