//! The configuration that the operator gave this policy.

use std::{fmt::Display, str::FromStr};

use crate::Problem;

/// The value of a key, if it is set.
pub fn get(key: &str) -> Option<String> {
    crate::host::config::get(key)
}

/// All keys that are set.
pub fn keys() -> Vec<String> {
    crate::host::config::keys()
}

/// The parsed value of a key, or `default` if it is not set.
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

/// A problem for each key that is not in `known`, so that a misspelt key is not silently ignored.
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
