//! Checks a document against the table of shapes, and reports for every error what would be valid.

use super::document::{Entry, Node, Value};
use super::place::FieldPath;
use super::problem::Problems;
use super::scalar::{Kind, kind, whole};
use super::shape::{Field, Keys, Shape};
use super::{rules, units};
use scupper_common::text::{nearest, one_line};

/// Bytes of a wrong value that are shown.
const SHOWN_BYTES: usize = 60;
/// After "must be".
pub(super) const DURATION: &str = "a duration such as 90s, 30m or 1h30m";

/// Checks a value and everything below it.
pub(super) fn check(node: &Node, shape: &Shape, path: &FieldPath, problems: &mut Problems) {
    match (&node.value, shape) {
        (Value::Broken, _) => {}
        (Value::Map(entries), Shape::Object(_) | Shape::Drain) => {
            check_object(node, entries, shape, path, problems)
        }
        (Value::Map(entries), Shape::Labels) => check_labels(entries, path, problems),
        (Value::Map(entries), Shape::Anything) => check_anything(entries, path, problems),
        (Value::List(items), Shape::List { of, most }) => {
            if items.len() > *most {
                let message = format!("has {} entries, and {most} are the most", items.len());
                problems.add(node.at, path, message);
            }
            for (index, item) in items.iter().enumerate() {
                check(item, of, &path.item(index), problems);
            }
        }
        (Value::Scalar { text, plain }, shape) if shape.is_scalar() => {
            if let Err(message) = check_scalar(text, *plain, shape) {
                problems.add(node.at, path, message);
            }
        }
        (value, shape) => {
            let message = format!("must be {}, and this is {}", shape.what(), value.what());
            problems.add(node.at, path, message);
        }
    }
}

fn check_object(node: &Node, entries: &[Entry], shape: &Shape, path: &FieldPath, problems: &mut Problems) {
    let Some(keys) = shape.keys() else { return };
    for entry in entries {
        match keys.field(&entry.key) {
            Some(field) => check(&entry.value, &field.shape, &path.key(&entry.key), problems),
            None => problems.add(entry.at, &path.key(&entry.key), unknown(&entry.key, &keys)),
        }
    }
    let has = |name: &str| entries.iter().any(|entry| entry.key == name);
    for field in keys
        .fields
        .iter()
        .filter(|field| field.required && !has(field.name))
    {
        problems.add(
            node.at,
            path,
            format!("`{}` is missing: {}", field.name, lowered(field.doc)),
        );
    }
    let chosen: Vec<_> = keys.one_of.iter().filter(|name| has(name)).collect();
    if !keys.one_of.is_empty() && chosen.len() != 1 {
        let message = match chosen.len() {
            0 => format!("one of {} is missing", listed(keys.one_of)),
            _ => format!("only one of {} may be given", listed(keys.one_of)),
        };
        problems.add(node.at, path, message);
    }
}

fn check_labels(entries: &[Entry], path: &FieldPath, problems: &mut Problems) {
    for entry in entries {
        let path = path.key(&entry.key);
        match &entry.value.value {
            Value::Broken => {}
            Value::Scalar { text, plain } if !(*plain && kind(text) != Kind::Text) => {
                if let Err(message) = rules::label(&entry.key, text) {
                    problems.add(entry.at, &path, message);
                }
            }
            Value::Scalar { text, .. } => {
                problems.add(entry.value.at, &path, quote(text));
            }
            other => {
                let message = format!(
                    "must be the label's value, as node-selector is a plain map of labels, and this is {}",
                    other.what()
                );
                problems.add(entry.value.at, &path, message);
            }
        }
    }
}

fn check_anything(entries: &[Entry], path: &FieldPath, problems: &mut Problems) {
    for entry in entries {
        if entry.value.is_nothing() {
            let message = "there is no value: write \"\" for an empty text, or leave the key out";
            problems.add(entry.value.at, &path.key(&entry.key), message);
        }
    }
}

/// Checks a scalar; `plain`: it is written without quotes.
pub(super) fn check_scalar(text: &str, plain: bool, shape: &Shape) -> Result<(), String> {
    let kind = if plain { kind(text) } else { Kind::Text };
    let wrong = || format!("must be {}, not `{}`", shape.what(), one_line(text, SHOWN_BYTES));
    if kind == Kind::Nothing {
        return Err(format!("must be {}, and there is no value", shape.what()));
    }
    match shape {
        Shape::Text(_) if kind != Kind::Text => Err(quote(text)),
        Shape::Text(rule) => rule.check(text),
        Shape::OneOf(words) if words.contains(&text) && kind == Kind::Text => Ok(()),
        Shape::OneOf(words) => match nearest(text, words.iter().copied()) {
            Some(word) => Err(format!("{}; did you mean {word}?", wrong())),
            None => Err(wrong()),
        },
        Shape::Bool if kind == Kind::Bool => Ok(()),
        Shape::Whole { least, most } if kind == Kind::Whole => {
            let fits = whole(text).is_some_and(|number| (*least..=*most).contains(&number));
            fits.then_some(()).ok_or_else(wrong)
        }
        Shape::Quantity { least, most } if matches!(kind, Kind::Whole | Kind::Text) => {
            let fits = units::quantity(text).is_some_and(|count| (*least..=*most).contains(&count));
            fits.then_some(()).ok_or_else(wrong)
        }
        Shape::Duration { least_ms, most_ms } if kind == Kind::Text || text == "0" => {
            let fits = |millis: u128| (u128::from(*least_ms)..=u128::from(*most_ms)).contains(&millis);
            let span = units::duration(text).filter(|span| fits(span.as_millis()));
            span.map(drop).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// The error for an unknown key, with the most similar known key.
fn unknown(key: &str, keys: &Keys) -> String {
    let below = || keys.fields.iter().find(|field| field.holds(key));
    let suggestion = match nearest(key, keys.fields.iter().map(|field| field.name)) {
        Some(name) => format!("did you mean {name}?"),
        None => match below() {
            Some(field) => format!("it belongs under {}", field.name),
            None => {
                let names: Vec<_> = keys.fields.iter().map(|field| field.name).collect();
                format!("there are {}", names.join(", "))
            }
        },
    };
    format!("no such key; {suggestion}")
}

impl Field {
    fn holds(&self, key: &str) -> bool {
        self.shape.keys().is_some_and(|keys| keys.field(key).is_some())
    }
}

fn quote(text: &str) -> String {
    let text = one_line(text, SHOWN_BYTES);
    format!("must be text: put it in quotes, \"{text}\"")
}

impl Shape {
    fn is_scalar(&self) -> bool {
        !matches!(
            self,
            Self::Object(_) | Self::Drain | Self::Labels | Self::Anything | Self::List { .. }
        )
    }

    /// After "must be".
    pub(super) fn what(&self) -> String {
        match self {
            Self::Text(rule) => rule.what.to_owned(),
            Self::Whole {
                least,
                most: i64::MAX,
            } => format!("{least} or more"),
            Self::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Self::Bool => "true or false".to_owned(),
            Self::Quantity { least, most } => format!(
                "bytes such as 64Mi, from {} to {}",
                units::bytes(*least),
                units::bytes(*most)
            ),
            Self::Duration { least_ms, most_ms } => format!(
                "{DURATION}, from {} to {}",
                units::millis(*least_ms),
                units::millis(*most_ms)
            ),
            Self::OneOf(words) => listed(words),
            Self::List { .. } => "a list".to_owned(),
            Self::Labels => "a map of labels".to_owned(),
            Self::Anything | Self::Object(_) | Self::Drain => "a map".to_owned(),
        }
    }
}

impl Value {
    fn what(&self) -> &'static str {
        match self {
            Self::Scalar { text, plain: true } if kind(text) == Kind::Nothing => "nothing",
            Self::Scalar { .. } => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Broken => "broken",
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}

/// A sentence without its capital and its full stop, to be continued.
fn lowered(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}
