//! Label and field selectors, in queries and in objects.
//!
//! The driver has a parser of label selectors as well. The simulator does not share it: it must not agree with the
//! driver's mistakes, and it selects as a real API server does (`tests/semantics/lists.rs`).

use serde_json::Value;

use super::failure::Failure;
use super::fields;
use super::kinds::Kind;

/// The selection of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

impl Selection {
    pub(crate) fn parse(kind: &Kind, labels: &str, wanted: &str) -> Result<Self, Failure> {
        Ok(Self {
            labels: parse_labels(labels)?,
            fields: parse_fields(kind, wanted)?,
        })
    }

    /// Selects everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|it| it.matches(object))
            && self
                .fields
                .iter()
                .all(|(field, same, value)| (field_text(object, field) == *value) == *same)
    }

    /// The value that a field must have, if the query requires one.
    pub(crate) fn required(&self, field: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(name, same, _)| name == field && *same)
            .map(|(_, _, value)| value.as_str())
    }
}

impl Requirement {
    fn matches(&self, object: &Value) -> bool {
        match self {
            Self::In(key, values) => {
                fields::label(object, key).is_some_and(|it| values.iter().any(|v| v == it))
            }
            Self::NotIn(key, values) => {
                !fields::label(object, key).is_some_and(|it| values.iter().any(|v| v == it))
            }
            Self::Exists(key) => fields::label(object, key).is_some(),
            Self::Missing(key) => fields::label(object, key).is_none(),
        }
    }
}

/// Whether a `LabelSelector` of an object's spec matches the labels. None matches nothing, an empty one everything.
pub(crate) fn label_selector_matches(selector: Option<&Value>, object: &Value) -> bool {
    let Some(selector) = selector.filter(|it| it.is_object()) else {
        return false;
    };
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    labels.is_none_or(|all| {
        all.iter()
            .all(|(key, value)| fields::label(object, key) == value.as_str())
    }) && fields::items(selector, "/matchExpressions")
        .iter()
        .all(|it| expression(it).is_some_and(|it| it.matches(object)))
}

fn expression(value: &Value) -> Option<Requirement> {
    let key = fields::text(value, "/key").to_owned();
    let values = || {
        fields::items(value, "/values")
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    Some(match fields::text(value, "/operator") {
        "In" => Requirement::In(key, values()),
        "NotIn" => Requirement::NotIn(key, values()),
        "Exists" => Requirement::Exists(key),
        "DoesNotExist" => Requirement::Missing(key),
        _ => return None,
    })
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Failure> {
    split_outside_parentheses(text)
        .into_iter()
        .map(|it| requirement(it.trim()))
        .collect()
}

fn requirement(text: &str) -> Result<Requirement, Failure> {
    let words: Vec<&str> = text.splitn(2, " notin ").collect();
    if let [key, values] = words.as_slice() {
        return Ok(Requirement::NotIn(key.trim().to_owned(), set(values)));
    }
    let words: Vec<&str> = text.splitn(2, " in ").collect();
    if let [key, values] = words.as_slice() {
        return Ok(Requirement::In(key.trim().to_owned(), set(values)));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(
            key.trim().to_owned(),
            vec![value.trim().to_owned()],
        ));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(
            key.trim().to_owned(),
            vec![value.trim().to_owned()],
        ));
    }
    if let Some(key) = text.strip_prefix('!') {
        return Ok(Requirement::Missing(key.trim().to_owned()));
    }
    if text.is_empty() || text.contains([' ', '(', ')']) {
        return Err(Failure::bad_request(format!(
            "unable to parse requirement: found '{text}', expected: identifier"
        )));
    }
    Ok(Requirement::Exists(text.to_owned()))
}

fn set(text: &str) -> Vec<String> {
    text.trim()
        .trim_start_matches('(')
        .trim_end_matches(')')
        .split(',')
        .map(|it| it.trim().to_owned())
        .collect()
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .filter(|it| !it.trim().is_empty())
    .collect()
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<(String, bool, String)>, Failure> {
    text.split(',')
        .filter(|it| !it.is_empty())
        .map(|it| field_requirement(kind, it))
        .collect()
}

fn field_requirement(kind: &Kind, text: &str) -> Result<(String, bool, String), Failure> {
    let (field, same, value) = if let Some((field, value)) = text.split_once("!=") {
        (field, false, value)
    } else if let Some((field, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (field, true, value)
    } else {
        let why = format!("invalid selector: '{text}'; can't understand '{text}'");
        return Err(Failure::bad_request(why));
    };
    let known = field == "metadata.name"
        || (field == "metadata.namespace" && kind.namespaced)
        || kind.selectable.iter().any(|it| it == field);
    if known {
        Ok((field.to_owned(), same, value.to_owned()))
    } else {
        Err(unknown_field(kind, field))
    }
}

fn unknown_field(kind: &Kind, field: &str) -> Failure {
    Failure::bad_request(match kind.kind.as_str() {
        "Pod" => format!("field label not supported: {field}"),
        kind if kind.starts_with("Lifecycle") => format!("field label not supported for {kind}: {field}"),
        _ => format!(
            "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
    })
}

fn field_text(object: &Value, field: &str) -> String {
    match object.pointer(&format!("/{}", field.replace('.', "/"))) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ if field == "spec.unschedulable" => "false".to_owned(),
        _ => String::new(),
    }
}
