//! The configuration.

use scupper_sdk::{Hold, Pod, Problem, config};

pub(crate) const KEYS: [&str; 3] = ["scheduling-groups", "controllers", "spanning"];

/// See `config.schema.json`.
pub(crate) struct Settings {
    pub(crate) scheduling_groups: bool,
    /// Keys of labels or annotations, and patterns of values.
    controllers: Vec<(String, String)>,
    /// How long a gang with pods on other nodes waits for these.
    pub(crate) hold: Option<Hold>,
}

impl Settings {
    pub(crate) fn read() -> Result<Self, Problem> {
        let choices = [("true", true), ("false", false)];
        Ok(Self {
            scheduling_groups: config::choice("scheduling-groups", true, &choices)?,
            controllers: config::parsed_list("controllers", "", mark)?,
            hold: hold()?,
        })
    }

    /// The pod says that it forms a gang with the others of its controller.
    pub(crate) fn is_marked(&self, pod: &Pod) -> bool {
        self.controllers.iter().any(|(key, pattern)| {
            let values = [pod.label(key), pod.annotation(key)];
            values
                .into_iter()
                .flatten()
                .any(|value| config::matches(pattern, value))
        })
    }
}

fn mark(text: &str) -> Result<(String, String), &'static str> {
    let pair = text
        .split_once('=')
        .map(|(key, value)| (key.trim(), value.trim()));
    match pair {
        Some((key, pattern)) if !key.is_empty() && !key.contains(char::is_whitespace) => {
            Ok((key.to_owned(), pattern.to_owned()))
        }
        _ => Err("must be KEY=VALUE; KEY=* matches every value"),
    }
}

fn hold() -> Result<Option<Hold>, Problem> {
    let text = config::get("spanning").unwrap_or_else(|| "evict".to_owned());
    let words: Vec<&str> = text.split_whitespace().collect();
    let hold = match words.as_slice() {
        ["evict"] => return Ok(None),
        ["hold", time] => config::duration(time).map(Hold::at_most),
        _ => None,
    };
    let what = "must be evict, or hold and a time such as 90s, 5m or 1h, and not zero";
    let problem = || Problem::new("spanning", format!("`{text}`: {what}"));
    hold.map(Some).ok_or_else(problem)
}
