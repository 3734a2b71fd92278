//! The rules of the configuration.

use std::time::Duration;

use scupper_sdk::{Drain, Hold, Pod, Problem, config, facts};

/// NVSentinel's, and those that every cluster has.
const SYSTEM_NAMESPACES: &str = "kube-system, kube-public, kube-node-lease, nvsentinel, gpu-operator, \
                                 network-operator, gmp-system, skyhook";
/// node-drainer's default.
const TIMEOUT: Duration = Duration::from_secs(3600);
const EXAMPLE: &str = "team-* DeleteAfterTimeout 1h grace 30s";

/// How the pods of some namespaces leave.
pub(crate) struct Rule {
    selector: Selector,
    pub(crate) mode: Mode,
}

/// Which namespaces: by name, or by a label's value. Both are patterns.
enum Selector {
    Name(String),
    Label(String, String),
}

/// What becomes of a pod.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Immediate,
    Keep,
    /// Keeps the pods of system namespaces.
    System,
    AllowCompletion(Option<Hold>),
    DeleteAfterTimeout(Hold),
}

/// The system namespaces, and then the configured rules.
pub(crate) fn rules() -> Result<Vec<Rule>, Problem> {
    let system = |pattern: &str| {
        let mode = Mode::System;
        name(pattern).map(|selector| Rule { selector, mode })
    };
    let mut rules = config::parsed_list("system-namespaces", SYSTEM_NAMESPACES, system)?;
    let texts = config::list("rules", "");
    if let Some([text, _]) = texts.array_windows().find(|[text, _]| text.starts_with("* ")) {
        let what = "must be the last rule: none after it applies";
        return Err(Problem::new(
            "rules",
            format!("`{text}`: {what}; an example is {EXAMPLE}"),
        ));
    }
    let rule = |text: &str| rule(text).map_err(|what| format!("{what}; an example is {EXAMPLE}"));
    rules.extend(config::parsed_list("rules", "", rule)?);
    Ok(rules)
}

fn rule(text: &str) -> Result<Rule, &'static str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (selector, mode) = words.split_first().ok_or("must have a selector and a mode")?;
    let (mode, times) = mode.split_first().ok_or("must have a mode after the selector")?;
    let hold = hold(times)?;
    let mode = match (*mode, hold) {
        ("Immediate", None) => Mode::Immediate,
        ("Keep", None) => Mode::Keep,
        ("Immediate" | "Keep", Some(_)) => {
            return Err("only AllowCompletion and DeleteAfterTimeout have times");
        }
        ("AllowCompletion", hold) => Mode::AllowCompletion(hold),
        ("DeleteAfterTimeout", hold) => {
            Mode::DeleteAfterTimeout(hold.unwrap_or_else(|| Hold::at_most(TIMEOUT)))
        }
        _ => return Err("the modes are Immediate, AllowCompletion, DeleteAfterTimeout and Keep"),
    };
    let selector = selector_of(selector)?;
    Ok(Rule { selector, mode })
}

/// `[TIME [grace TIME]]`
fn hold(words: &[&str]) -> Result<Option<Hold>, &'static str> {
    let time = |text| config::duration(text).ok_or("a time must be like 90s, 5m or 1h, and not zero");
    match words {
        [] => Ok(None),
        [at_most] => Ok(Some(Hold::at_most(time(at_most)?))),
        [at_most, "grace", grace] => Ok(Some(Hold::at_most(time(at_most)?).max_grace(time(grace)?))),
        _ => Err("after the mode only a time, and then `grace` and a time, may follow"),
    }
}

fn selector_of(text: &str) -> Result<Selector, &'static str> {
    if let Some((key, value)) = text.split_once('=') {
        let is_key = !key.is_empty() && !key.contains(['*', '?']);
        let label = Selector::Label(key.to_owned(), value.to_owned());
        return is_key
            .then_some(label)
            .ok_or("a label needs a key without * and ?");
    }
    name(text)
}

fn name(text: &str) -> Result<Selector, &'static str> {
    let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-*?".contains(c);
    let is_name = text.chars().all(is_known);
    let name = is_name.then(|| Selector::Name(text.to_owned()));
    name.ok_or("a namespace has only a-z, 0-9 and -; a pattern also * and ?")
}

impl Rule {
    pub(crate) const fn reads_labels(&self) -> bool {
        matches!(self.selector, Selector::Label(..))
    }

    pub(crate) fn matches(&self, pod: &Pod) -> Result<bool, facts::Error> {
        match &self.selector {
            Selector::Name(pattern) => Ok(config::matches(pattern, &pod.namespace)),
            Selector::Label(key, pattern) => match facts::namespace(&pod.namespace) {
                Ok(namespace) => Ok(namespace
                    .label(key)
                    .is_some_and(|value| config::matches(pattern, value))),
                // It was deleted meanwhile, and its pods with it.
                Err(facts::Error::NotFound(_)) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }
}

impl Mode {
    /// How long its pods may stay, if it limits that.
    pub(crate) const fn hold(self) -> Option<Hold> {
        match self {
            Self::Immediate | Self::Keep | Self::System => None,
            Self::AllowCompletion(hold) => hold,
            Self::DeleteAfterTimeout(hold) => Some(hold),
        }
    }

    /// What becomes of a pod, for people.
    pub(crate) fn reason(self, drain: &Drain) -> String {
        match self {
            Self::Immediate => "Immediate".to_owned(),
            Self::Keep => "Keep".to_owned(),
            Self::System => "a system namespace, whose pods stay".to_owned(),
            Self::AllowCompletion(None) => "AllowCompletion".to_owned(),
            Self::AllowCompletion(Some(hold)) => format!("AllowCompletion, evicted {}", hold.when(drain)),
            Self::DeleteAfterTimeout(hold) => format!("DeleteAfterTimeout, deleted {}", hold.when(drain)),
        }
    }
}
