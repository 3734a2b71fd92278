//! The flags of a drain that a command hands over to a driver, as the annotation of a LifecycleEvent carries them. The
//! command writes them; the driver trusts nothing in them.
//!
//! They may narrow the driver's settings, and widen them only where `drain.allow-overrides` lists them.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_common::text::one_line;

use super::{DrainSettings, Flag, GivenSettings, RequestRule, SETTINGS, Setting};
use crate::document::{Node, Value};
use crate::place::Position;

/// The longest text that is read.
const LONGEST: usize = 4096;
/// Bytes of a name that are shown.
const SHOWN_BYTES: usize = 60;
/// Bytes of a flag's value that are shown.
const SHOWN_VALUE_BYTES: usize = 200;

/// What `allow-overrides` may list: flags of the commands, and `at-deadline`, which then also applies before the deadline
/// of a shorter `--timeout`.
pub(super) const OVERRIDES: &[&str] = &[
    "force",
    "delete-emptydir-data",
    "ignore-daemonsets",
    "local-data",
    "grace-period",
    "notify-before",
    "returning-pod-evictions",
    TIMEOUT,
    "at-deadline",
];
const TIMEOUT: &str = "timeout";

/// The admission policies of the driver's account forbid it as well, unless its own configuration has it.
const NO_GRACE: &str = "the driver evicts no pod with --grace-period=0, whatever drain.allow-overrides lists: that removes pods from the API \
     server while their containers may still run. Only a driver with grace-period: 0 under drain does so. Give at least 1, \
     or drain from your terminal with --local";

/// The flags of a request by their names, as they were typed.
pub type RequestFlags = BTreeMap<String, String>;

/// Reads the flags of a request: a JSON object of texts. Whether the driver permits them is checked later.
///
/// # Errors
/// What is wrong with them. A flag that is missing is an error, and not a default.
pub fn read_request(text: &str) -> Result<RequestFlags, String> {
    if text.len() > LONGEST {
        let length = text.len();
        return Err(format!(
            "{length} bytes are more than the {LONGEST} that are read"
        ));
    }
    let flags: RequestFlags = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for (name, text) in &flags {
        let known = of_requests().find(|(_, flag)| flag.name == name);
        let Some((setting, _)) = known else {
            return Err(format!("unknown flag {}", one_line(name, SHOWN_BYTES)));
        };
        setting
            .typed(text)
            .map_err(|problem| format!("{name} {problem}"))?;
    }
    let mut required = of_requests().filter(|(setting, _)| setting.default_to_send().is_some());
    match required.find(|(_, flag)| !flags.contains_key(flag.name)) {
        Some((_, flag)) => Err(format!("missing flag {}", flag.name)),
        None => Ok(flags),
    }
}

/// The flags of a request that the drain under way does not have, as they are to be typed.
pub fn flags_without_effect(request: &str, under_way: &str) -> Vec<String> {
    let [given, has] =
        [request, under_way].map(|text| serde_json::from_str::<RequestFlags>(text).unwrap_or_default());
    let was_given = |setting: &Setting, text: &str| setting.default_to_send() != Some(text);
    let lacks = |(setting, flag): (&Setting, &Flag)| {
        let text = given.get(flag.name)?;
        (was_given(setting, text) && has.get(flag.name) != Some(text)).then(|| typed_flag(flag.name, text))
    };
    of_requests().filter_map(lacks).collect()
}

/// A flag as it is to be typed: in quotes where a shell would read its value otherwise.
pub fn typed_flag(name: &str, text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "=,._-/".contains(letter);
    match one_line(text, SHOWN_VALUE_BYTES) {
        text if text.chars().all(is_plain) => format!("--{name}={text}"),
        text => format!("--{name}='{}'", text.replace('\'', r"'\''")),
    }
}

/// The settings that a request may carry, and their flags.
fn of_requests() -> impl Iterator<Item = (&'static Setting, &'static Flag)> {
    SETTINGS.iter().filter_map(|setting| match setting.request {
        RequestRule::Refused | RequestRule::NotSent => None,
        RequestRule::Accepted | RequestRule::Narrows(_) => Some((setting, setting.command_flag.as_ref()?)),
    })
}

impl Setting {
    pub(super) fn default_to_send(&self) -> Option<&'static str> {
        self.kubectl_default.filter(|_| self.sends_default)
    }
}

impl GivenSettings {
    /// The text of a request with what was typed and, for the rest, the command's defaults.
    pub fn to_request(&self) -> String {
        let flags = of_requests().filter_map(|(setting, flag)| {
            let typed = self.0.get(setting.name()).and_then(Node::text);
            Some((flag.name, typed.or_else(|| setting.default_to_send())?.into()))
        });
        serde_json::Value::Object(flags.map(|(name, text)| (name.to_owned(), text)).collect()).to_string()
    }

    /// The first flag that no request carries, so that only a drain from the terminal obeys it.
    pub fn only_local(&self) -> Option<String> {
        let mut refused = SETTINGS
            .iter()
            .filter(|setting| matches!(setting.request, RequestRule::Refused));
        let is_given = |setting: &&Setting| {
            let text = self.0.get(setting.name()).and_then(Node::text);
            setting.command_flag.is_some() && text.is_some_and(|text| text != "false")
        };
        refused
            .find(is_given)
            .map(|setting| format!("--{}", setting.name()))
    }

    /// Adds `--allow-overrides`: names separated by commas.
    ///
    /// # Errors
    /// A name that is unknown.
    pub fn allow_overrides(&mut self, names: &str) -> Result<(), String> {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let mut allowed = Vec::new();
        for name in names {
            if !OVERRIDES.contains(&name) {
                let known = OVERRIDES.join(", ");
                return Err(format!(
                    "--allow-overrides {name}: unknown flag; known are {known}"
                ));
            }
            allowed.push(node(Value::Scalar {
                text: name.to_owned(),
                plain: true,
            }));
        }
        self.0.insert("allow-overrides", node(Value::List(allowed)));
        Ok(())
    }
}

fn node(value: Value) -> Node {
    let at = Position::default();
    Node { at, value }
}

impl DrainSettings {
    /// Checks whether a driver with these settings obeys a request with these flags, and returns the request's time limit,
    /// as far as it counts.
    ///
    /// A limit beyond the driver's own is not refused: the driver's ends the drain, as it does where a kubelet claims the
    /// event.
    ///
    /// # Errors
    /// The flags that widen the settings without permission, and what to do.
    pub fn permit(&self, flags: &RequestFlags) -> Result<Option<Duration>, String> {
        let wanted = self.clone().with_flags(flags);
        let refused: Vec<_> = of_requests()
            .filter_map(|(setting, flag)| match setting.request {
                RequestRule::Narrows(widened) => {
                    Some((flag.name, flags.get(flag.name)?, widened(self, &wanted)?))
                }
                _ => None,
            })
            .filter(|(name, ..)| !self.allows(name))
            .collect();
        if !refused.is_empty() {
            return Err(refusal(&refused));
        }
        let own = self.engine.grace_seconds;
        if wanted.engine.grace_seconds == Some(0) && own != Some(0) {
            return Err(NO_GRACE.to_owned());
        }
        let beyond = |timeout: &Duration| self.time_limit.is_some_and(|limit| *timeout > limit);
        let timeout = wanted.requested_limit(flags);
        Ok(timeout.filter(|timeout| self.allows(TIMEOUT) || !beyond(timeout)))
    }

    /// The same for a drain with these flags of a permitted request. Where a flag is absent, these settings apply.
    #[must_use]
    pub fn with_request(self, flags: &RequestFlags) -> Self {
        let mut wanted = self.clone().with_flags(flags);
        let is_shorter = |timeout: Duration| self.time_limit.is_none_or(|limit| timeout < limit);
        // Who may request a drain may shorten it, and so could have pods deleted at once.
        if wanted.requested_limit(flags).is_some_and(is_shorter) && !self.allows("at-deadline") {
            wanted.engine.at_deadline = None;
        }
        let (own, given) = (self.engine.grace_seconds, wanted.engine.grace_seconds);
        let is_given = flags.contains_key("grace-period") && given.is_some();
        wanted.engine.grace_seconds = given.or(own);
        // Against the pods' own grace periods the plan compares, pod by pod.
        wanted.engine.grace_only_longer = is_given && own.is_none() && !self.allows("grace-period");
        Self {
            time_limit: self.time_limit,
            ..wanted
        }
    }

    fn with_flags(mut self, flags: &RequestFlags) -> Self {
        for (setting, flag) in of_requests() {
            let typed = flags.get(flag.name).map(|text| setting.typed(text));
            if let Some(Ok(value)) = typed {
                (setting.set)(&mut self, &value);
            }
        }
        self
    }

    /// The time limit of a request that has been applied.
    fn requested_limit(&self, flags: &RequestFlags) -> Option<Duration> {
        self.time_limit.filter(|_| flags.contains_key(TIMEOUT))
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed_overrides.iter().any(|allowed| allowed == name)
    }
}

/// Flags, their texts, and what the driver has instead.
fn refusal(refused: &[(&str, &String, String)]) -> String {
    let listed = |part: &dyn Fn(&(&str, &String, String)) -> String| {
        refused.iter().map(part).collect::<Vec<_>>().join(", ")
    };
    let given = |(name, text, _): &(&str, &String, String)| match text.as_str() {
        "true" => format!("--{name}"),
        text => format!("--{name}={text}"),
    };
    format!(
        "the driver's configuration does not allow {}: it has {} under drain, and drain.allow-overrides does not list \
         {}. Leave the flag out, let the operator list it there, or drain from your terminal with --local",
        listed(&given),
        listed(&|(name, _, own)| format!("{name}: {own}")),
        listed(&|(name, ..)| (*name).to_owned()),
    )
}
