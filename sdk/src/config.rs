//! The configuration that the operator gave this policy.

use std::{fmt::Display, str::FromStr, time::Duration};

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

/// The items of a list: commas or ends of lines separate them. `default` if the key is not set.
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let host = Host::new();
/// assert_eq!(config::list("kinds", "Job, Workflow"), ["Job", "Workflow"]);
/// host.config("kinds", "Job\nRayJob\n");
/// assert_eq!(config::list("kinds", "Job, Workflow"), ["Job", "RayJob"]);
/// ```
pub fn list(key: &str, default: &str) -> Vec<String> {
    let text = get(key).unwrap_or_else(|| default.to_owned());
    let items = text.split([',', '\n']).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// `90s`, `5m` or `1h`; not zero.
///
/// ```
/// # use {scupper_sdk::config, std::time::Duration};
/// assert_eq!(config::duration("5m"), Some(Duration::from_secs(300)));
/// assert_eq!(config::duration("5"), None);
/// ```
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let seconds = number.parse::<u64>().ok()?.checked_mul(seconds)?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Whether a pattern describes a text: `*` stands for any characters, `?` for one.
///
/// ```
/// # use scupper_sdk::config::matches;
/// assert!(matches("team-*", "team-a") && matches("*", "") && matches("a?c*", "abcd"));
/// assert!(!matches("team-*", "a-team-a") && !matches("a?", "a"));
/// ```
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut in_text) = (0, 0);
    // The last star, and the first character after what it stands for.
    let mut star = None;
    while let Some(next) = text.get(in_text) {
        match (pattern.get(at), &mut star) {
            (Some('*'), _) => {
                star = Some((at, in_text));
                at += 1;
            }
            (Some(wanted), _) if *wanted == '?' || wanted == next => {
                at += 1;
                in_text += 1;
            }
            (_, Some((star, end))) => {
                *end += 1;
                (at, in_text) = (*star + 1, *end);
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}
