//! What the operator configured for this policy.

use std::{fmt::Display, str::FromStr};

use crate::Problem;

/// The value of a key, if the operator gave one.
pub fn get(key: &str) -> Option<String> {
    crate::host::config::get(key)
}

/// All keys that the operator gave.
pub fn keys() -> Vec<String> {
    crate::host::config::keys()
}

/// The value of a key as something other than text, or `default` when the operator gave none.
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let host = Host::new();
/// assert_eq!(config::parse("poll-seconds", 5), Ok(5));
/// host.config("poll-seconds", "soon");
/// let problem = config::parse("poll-seconds", 5).unwrap_err();
/// assert_eq!(problem.message, "`soon`: invalid digit found in string");
/// ```
pub fn parse<T>(key: &str, default: T) -> Result<T, Problem>
where
    T: FromStr,
    T::Err: Display,
{
    let Some(text) = get(key) else {
        return Ok(default);
    };
    text.trim()
        .parse()
        .map_err(|error| Problem::new(key, format!("`{text}`: {error}")))
}

/// A problem for each key that is none of `known`. A misspelt key would otherwise be a setting that does nothing.
pub fn unknown_keys(known: &[&str]) -> Vec<Problem> {
    keys()
        .into_iter()
        .filter(|key| !known.contains(&key.as_str()))
        .map(|key| {
            let message = format!("no such key; there are {}", known.join(", "));
            Problem::new(key, message)
        })
        .collect()
}
