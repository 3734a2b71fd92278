//! The settings of drains. One table says for each setting everything that is not the engine's: its key in the file with
//! the type, bounds and text of the published schema, its flags with their help, whether a request may carry it, and
//! what it sets. The check of the file, the schema, the flags, requests and the driver's settings follow from it.
//!
//! ```text
//!  file ────┐
//!  flags ───┼─► GivenSettings ─► DrainSettings ─► engine
//!  request ─┘
//! ```
//!
//! A new setting is one row of [`table`] and one field of what it sets.

mod at_deadline;
mod request;
mod surge;
mod table;
mod volumes;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use scupper_engine::Settings;

use crate::check::{DURATION, check_scalar};
use crate::document::{Node, Value};
use crate::place::{FieldPath, Position};
use crate::problem::Problems;
use crate::scalar;
use crate::shape::{Field, Shape};
use crate::units;

pub use request::{RequestFlags, flags_without_effect, read_request, typed_flag};
pub use table::SETTINGS;

/// The key of all of them in the file.
const KEY: &str = "drain";

/// How drains of a node run.
#[derive(Clone, Debug)]
pub struct DrainSettings {
    /// How pods are chosen and evicted.
    pub engine: Settings,
    /// Time limit of one eviction request.
    pub eviction_timeout: Duration,
    /// Time limit of the drain; `None`: none.
    pub time_limit: Option<Duration>,
    /// Objects in one page of a list; 0: all.
    pub page_size: u32,
    /// Settings that a request may widen.
    pub allowed_overrides: Vec<String>,
}

impl Default for DrainSettings {
    /// Without file and flags.
    fn default() -> Self {
        Self {
            engine: Settings::default(),
            eviction_timeout: Duration::from_secs(30),
            time_limit: None,
            page_size: 500,
            allowed_overrides: Vec::new(),
        }
    }
}

impl DrainSettings {
    /// The same with what a source gives. The last source wins.
    #[must_use]
    pub fn with(mut self, given: &GivenSettings) -> Self {
        for setting in SETTINGS {
            if let Some(value) = given.0.get(setting.name()) {
                (setting.set)(&mut self, value);
            }
        }
        self
    }
}

/// A setting of drains.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file, its values there and in flags, and its description in the schema. Without a description it
    /// is not in the file.
    field: Field,
    /// Its flag of `scupper kubelet-plugin`.
    pub driver_flag: Option<Flag>,
    /// Its flag of `scupper plan` and `scupper drain`.
    pub command_flag: Option<Flag>,
    /// The default of these commands, as a flag's value. `None`: the driver's own setting.
    kubectl_default: Option<&'static str>,
    /// A request carries that default where the flag is not typed. Otherwise the driver's own setting applies to it.
    sends_default: bool,
    /// Whether a request may carry the command's flag.
    request: RequestRule,
    /// Finds contradictions in a value of the file.
    check: fn(&Node, &FieldPath, &mut Problems),
    /// Takes a valid value over.
    set: fn(&mut DrainSettings, &Node),
}

/// What a request may do with a setting. The right to make a request is not the right to change the configuration.
#[derive(Debug)]
enum RequestRule {
    /// It does not carry the setting: only a drain from the terminal obeys the flag.
    Refused,
    /// It does not carry the setting: the command itself obeys the flag, also while a driver drains.
    NotSent,
    /// Every value narrows what the driver does, or is limited elsewhere.
    Accepted,
    /// It may narrow it, and widen it only where `allow-overrides` lists it. Gets the driver's settings and those that
    /// the request wants; returns the driver's value if the request widens it.
    Narrows(fn(&DrainSettings, &DrainSettings) -> Option<String>),
}

/// A flag of a setting.
#[derive(Debug)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// The name of its value in the help; empty: it takes none.
    pub value: &'static str,
    /// Its help.
    pub help: &'static str,
    /// It is listed among the first options of its command.
    pub is_main: bool,
    /// The whole error for a wrong value, where it is not ours.
    wrong: Option<&'static str>,
}

impl Flag {
    /// Listed under the heading of pods and evictions.
    const fn new(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self {
            name,
            value,
            help,
            is_main: false,
            wrong: None,
        }
    }

    /// Listed among the first options of its command.
    const fn main(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self {
            is_main: true,
            ..Self::new(name, value, help)
        }
    }
}

/// The values that a flag takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagValues {
    /// `true` or `false`.
    Bool,
    /// Whole numbers.
    Whole(RangeInclusive<i64>),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Texts, of which [`GivenSettings::add_flag`] knows which are valid.
    Text,
}

impl Setting {
    /// Its key in the file, or its name if it has none.
    pub const fn name(&self) -> &'static str {
        self.field.name
    }

    /// The values of its flags, as far as their form goes.
    pub const fn flag_values(&self) -> FlagValues {
        match self.field.shape {
            Shape::Bool => FlagValues::Bool,
            Shape::Whole { least, most } if least >= 0 && most < i64::MAX => FlagValues::Whole(least..=most),
            Shape::Whole { .. } => FlagValues::Whole(i64::MIN..=i64::MAX),
            Shape::OneOf(words) => FlagValues::Words(words),
            _ => FlagValues::Text,
        }
    }

    /// The value of a flag, if it is valid.
    fn typed(&self, text: &str) -> Result<Node, String> {
        // As for kubectl: every negative number means -1.
        let is_below = |least: i64| scalar::whole(text).is_some_and(|number| number < least);
        let text = match self.field.shape {
            Shape::Whole { least: -1, .. } if is_below(-1) => "-1",
            _ => text,
        };
        let plain = !matches!(self.field.shape, Shape::Text(_));
        check_scalar(text, plain, &self.field.shape)?;
        let text = text.to_owned();
        Ok(Node {
            at: Position::default(),
            value: Value::Scalar { text, plain },
        })
    }
}

/// Its keys in the file.
pub(super) fn fields() -> impl Iterator<Item = &'static Field> {
    let fields = SETTINGS.iter().map(|setting| &setting.field);
    fields.filter(|field| !field.doc.is_empty())
}

/// The settings that one source gives: a file, a command line or a request.
#[derive(Clone, Debug, Default)]
pub struct GivenSettings(BTreeMap<&'static str, Node>);

impl GivenSettings {
    /// What the file gives under `drain`.
    pub(super) fn of_file(root: &Node, problems: &mut Problems) -> Self {
        let mut given = Self::default();
        let path = FieldPath::default().key(KEY);
        for setting in SETTINGS {
            let value = root.get(KEY).and_then(|drain| drain.get(setting.name()));
            if let Some(value) = value {
                (setting.check)(value, &path.key(setting.name()), problems);
                given.0.insert(setting.name(), value.clone());
            }
        }
        given
    }

    /// The defaults of `scupper plan` and `scupper drain`, which are `kubectl drain`'s.
    pub fn of_kubectl() -> Self {
        Self::defaults(|setting| setting.kubectl_default)
    }

    /// Those of these defaults that a request carries. To the rest the driver's own settings apply.
    pub fn of_requests() -> Self {
        Self::defaults(Setting::default_to_send)
    }

    fn defaults(of: impl Fn(&Setting) -> Option<&'static str>) -> Self {
        let defaults = SETTINGS.iter().filter_map(|setting| {
            let default = setting.typed(of(setting)?).ok()?;
            Some((setting.name(), default))
        });
        Self(defaults.collect())
    }

    /// Adds what a flag gives.
    ///
    /// # Errors
    /// The flag and what its value must be.
    pub fn add_flag(&mut self, setting: &'static Setting, flag: &Flag, text: &str) -> Result<(), String> {
        let value = setting
            .typed(text)
            .map_err(|_| match (flag.wrong, &setting.field.shape) {
                (Some(wrong), _) => wrong.to_owned(),
                (None, Shape::Duration { .. }) if units::duration(text).is_none() => {
                    format!("--{} {text}: must be {DURATION}", flag.name)
                }
                (None, shape) => format!("--{} {text}: must be {}", flag.name, shape.what()),
            })?;
        self.0.insert(setting.name(), value);
        Ok(())
    }

    /// What a file would say to give the same, by its keys. Without settings that no file has.
    pub fn file_values(&self) -> serde_json::Map<String, serde_json::Value> {
        let values = fields().filter_map(|field| {
            let value = self.0.get(field.name)?;
            Some((field.name.to_owned(), value.to_json()))
        });
        values.collect()
    }

    /// The setting is given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Replaces a value, if there is one.
fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests;
