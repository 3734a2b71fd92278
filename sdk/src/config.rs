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

/// For [`check_config`](crate::Policy::check_config): keys that are not in `known`, and why the settings cannot be read.
pub fn check<T>(known: &[&str], settings: Result<T, Problem>) -> Vec<Problem> {
    let mut problems = unknown_keys(known);
    problems.extend(settings.err());
    problems
}

/// The value of a key that must be one of these choices, or `default` if it is not set.
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let host = Host::new();
/// let choices = [("never", 0), ("always", 1)];
/// assert_eq!(config::choice("when", 0, &choices), Ok(0));
/// host.config("when", "often");
/// let problem = config::choice("when", 0, &choices).unwrap_err();
/// assert_eq!(problem.message, "`often`: must be never or always");
/// ```
pub fn choice<T: Copy>(key: &str, default: T, choices: &[(&str, T)]) -> Result<T, Problem> {
    let Some(text) = get(key) else {
        return Ok(default);
    };
    let chosen = choices.iter().find(|(name, _)| *name == text.trim());
    chosen.map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Problem::new(key, format!("`{text}`: must be {}", names.join(" or ")))
    })
}

/// The duration that a key is set to, such as `5m`, or `default` if it is not set.
///
/// ```
/// # use {scupper_sdk::{config, testing::Host}, std::time::Duration};
/// let (host, hour) = (Host::new(), Duration::from_secs(3600));
/// assert_eq!(config::time("cap", hour), Ok(hour));
/// host.config("cap", "0s");
/// let problem = config::time("cap", hour).unwrap_err();
/// assert_eq!(problem.message, "`0s`: must be a time such as 90s, 5m or 1h, and not zero");
/// ```
pub fn time(key: &str, default: Duration) -> Result<Duration, Problem> {
    let Some(text) = get(key) else {
        return Ok(default);
    };
    let what = "must be a time such as 90s, 5m or 1h, and not zero";
    duration(text.trim()).ok_or_else(|| Problem::new(key, format!("`{text}`: {what}")))
}

/// The short name that a key is set to, if it is set.
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let host = Host::new();
/// assert_eq!(config::name("cluster"), Ok(None));
/// host.config("cluster", "east-1");
/// assert_eq!(config::name("cluster"), Ok(Some("east-1".to_owned())));
/// host.config("cluster", "the east");
/// assert!(config::name("cluster").unwrap_err().message.contains("must be a name"));
/// ```
pub fn name(key: &str) -> Result<Option<String>, Problem> {
    let Some(text) = get(key).filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let name = text.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.len() > 63 || !name.chars().all(is_plain) {
        let rule = "must be a name of at most 63 letters, digits, dots, hyphens and underscores";
        return Err(Problem::new(key, rule));
    }
    Ok(Some(name.to_owned()))
}

/// The URL that a key is set to, without a trailing slash, as the start of the URLs of requests and of
/// [`Grant::http`](crate::Grant::http). It is a problem if the key is not set; `example` says what to set.
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let (host, example) = (Host::new(), "https://jobs.example.com/v1");
/// let missing = config::url("url", example).unwrap_err();
/// assert_eq!(missing.message, "missing: set a URL such as https://jobs.example.com/v1");
/// host.config("url", "https://jobs.example.net/");
/// assert_eq!(config::url("url", example).as_deref(), Ok("https://jobs.example.net"));
/// // The host sends a request only to a URL in its canonical form.
/// host.config("url", "HTTPS://Jobs.Example.net/V1");
/// assert_eq!(config::url("url", example).as_deref(), Ok("https://jobs.example.net/V1"));
/// host.config("url", "jobs.example.net");
/// let problem = config::url("url", example).unwrap_err();
/// assert_eq!(problem.message, "`jobs.example.net`: must be a URL such as https://jobs.example.com/v1");
/// ```
pub fn url(key: &str, example: &str) -> Result<String, Problem> {
    let text = get(key).unwrap_or_default();
    let url = text.trim();
    if url.is_empty() {
        return Err(Problem::new(key, format!("missing: set a URL such as {example}")));
    }
    // Scheme and host mean the same in capitals.
    let path = url
        .find("://")
        .and_then(|at| Some(at + 3 + url.get(at + 3..)?.find('/')?));
    let (origin, path) = url
        .split_at_checked(path.unwrap_or(url.len()))
        .unwrap_or((url, ""));
    let url = format!("{}{path}", origin.to_ascii_lowercase());
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    // A path is appended, so there is no query; a password does not belong into a configuration.
    let odd = |c: char| c.is_whitespace() || "?#@".contains(c);
    if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/') || rest.contains(odd)) {
        return Err(Problem::new(
            key,
            format!("`{url}`: must be a URL such as {example}"),
        ));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// The names of nodes in another system: `node-1=NAME,node-2=NAME`. Two nodes cannot share one name there, because the
/// uncordon of the first would return the other one to service as well. Empty if the key is not set.
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let host = Host::new();
/// host.config("table", "node-1=gpu-1, node-2=gpu-2");
/// let table = config::table("table").unwrap();
/// assert_eq!(table[1], ("node-2".to_owned(), "gpu-2".to_owned()));
/// host.config("table", "node-1=gpu-1,node-2=gpu-1");
/// let problem = config::table("table").unwrap_err();
/// assert!(problem.message.starts_with("node-1 and node-2 cannot both be gpu-1: "));
/// ```
pub fn table(key: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut table: Vec<(String, String)> = Vec::new();
    for part in list(key, "") {
        let pair = part
            .split_once('=')
            .map(|(node, name)| (node.trim(), name.trim()));
        let Some((node, name)) = pair.filter(|(node, name)| !node.is_empty() && !name.is_empty()) else {
            let rule = format!("`{part}`: must be NODE=NAME,NODE=NAME");
            return Err(Problem::new(key, rule));
        };
        if let Some((other, _)) = table.iter().find(|(_, known)| known == name) {
            return Err(Problem::new(
                key,
                format!(
                    "{other} and {node} cannot both be {name}: the uncordon of one would return the other to service"
                ),
            ));
        }
        if table.iter().any(|(known, _)| known == node) {
            return Err(Problem::new(key, format!("{node} has two names")));
        }
        table.push((node.to_owned(), name.to_owned()));
    }
    Ok(table)
}

/// The parsed items of a [`list`].
///
/// ```
/// # use scupper_sdk::{config, testing::Host};
/// let host = Host::new();
/// assert_eq!(config::parsed_list("ports", "80, 443", str::parse::<u16>), Ok(vec![80, 443]));
/// host.config("ports", "80, x");
/// let problem = config::parsed_list("ports", "80, 443", str::parse::<u16>).unwrap_err();
/// assert_eq!(problem.message, "`x`: invalid digit found in string");
/// ```
pub fn parsed_list<T, E: Display>(
    key: &str,
    default: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, Problem> {
    let item = |text: &String| parse(text).map_err(|what| Problem::new(key, format!("`{text}`: {what}")));
    list(key, default).iter().map(item).collect()
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

/// Whether a text matches one of these patterns.
pub fn matches_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}
