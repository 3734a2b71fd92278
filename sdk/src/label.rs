//! A label and a pattern of its value, by which configurations select pods and namespaces.

use std::{fmt, str::FromStr};

use crate::config;

/// A label and a pattern of its value: `tier=batch*`.
///
/// ```
/// use scupper_sdk::LabelPattern;
///
/// let batch: LabelPattern = "tier=batch*".parse().unwrap();
/// assert_eq!(batch.key(), "tier");
/// assert!(batch.matches(Some("batch-low")) && !batch.matches(Some("web")) && !batch.matches(None));
/// assert_eq!("tier = batch*".parse(), Ok(batch));
/// assert!("tier".parse::<LabelPattern>().is_err() && "the tier=batch".parse::<LabelPattern>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPattern {
    key: String,
    value: String,
}

impl LabelPattern {
    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether the label has such a value; `None`: there is no such label.
    pub fn matches(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| config::matches(&self.value, value))
    }
}

impl FromStr for LabelPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = text
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()));
        // No label has such a key or value: the pattern would match nothing.
        let odd = |c: char| c.is_whitespace();
        let is_key = |key: &str| !key.is_empty() && !key.contains(['*', '?']) && !key.contains(odd);
        match pair {
            Some((key, value)) if is_key(key) && !value.contains(odd) => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err("must be LABEL=VALUE; in the value * stands for any characters and ? for one"),
        }
    }
}

impl fmt::Display for LabelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}
