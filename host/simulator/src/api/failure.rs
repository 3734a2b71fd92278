//! Refusals as `v1 Status` bodies, with the exact texts of a real API server.

use serde_json::{Value, json};

use super::fields;
use super::kinds::Kind;

/// A refused request.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) retry_after: Option<u32>,
}

/// One field that a validation refuses.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(crate) field: String,
    /// `FieldValueRequired`, `FieldValueInvalid`, `FieldValueForbidden`, …
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn required(field: &str, text: &str) -> Self {
        let message = if text.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {text}")
        };
        Self {
            field: field.to_owned(),
            reason: "FieldValueRequired",
            message,
        }
    }

    pub(crate) fn invalid(field: &str, value: &Value, text: &str) -> Self {
        let message = format!("Invalid value: {value}: {text}");
        Self {
            field: field.to_owned(),
            reason: "FieldValueInvalid",
            message,
        }
    }

    pub(crate) fn too_long(field: &str, most: usize) -> Self {
        Self {
            field: field.to_owned(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {most} bytes"),
        }
    }

    pub(crate) fn forbidden(field: &str, text: &str) -> Self {
        Self {
            field: field.to_owned(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {text}"),
        }
    }
}

impl Failure {
    /// A refusal with a code, a reason and a message.
    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message.into(), "reason": reason, "code": code});
        if reason.is_empty() {
            fields::unset(&mut body, "/reason");
        }
        Self {
            code,
            body,
            retry_after: None,
        }
    }

    pub(crate) fn details(mut self, details: Value) -> Self {
        fields::set(&mut self.body, "/details", details);
        self
    }

    pub(crate) fn causes(mut self, causes: Value) -> Self {
        fields::set(&mut self.body, "/details/causes", causes);
        self
    }

    /// Adds `Retry-After` to the headers and the details.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        fields::set(&mut self.body, "/details/retryAfterSeconds", seconds.into());
        self.retry_after = Some(seconds);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", kind.resource()),
        )
        .details(kind.details(name, &kind.plural))
    }

    /// An unknown path.
    pub(crate) fn no_such_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .details(json!({}))
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", kind.resource()),
        )
        .details(kind.details(name, &kind.plural))
    }

    /// A write based on an old version.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.resource()
        );
        Self::new(409, "Conflict", message).details(kind.details(name, &kind.plural))
    }

    /// A failed precondition of a deletion, with the kind instead of the resource.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.qualified()
        );
        Self::new(409, "Conflict", message).details(kind.details(name, &kind.kind))
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let what = if name.is_empty() {
            kind.resource()
        } else {
            format!("{} \"{name}\"", kind.resource())
        };
        Self::new(403, "Forbidden", format!("{what} is forbidden: {why}"))
            .details(kind.details(name, &kind.plural))
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_as(&kind.qualified(), kind.details(name, &kind.kind), name, causes)
    }

    pub(crate) fn invalid_as(qualified: &str, details: Value, name: &str, causes: &[Cause]) -> Self {
        let lines: Vec<String> = causes
            .iter()
            .map(|it| format!("{}: {}", it.field, it.message))
            .collect();
        let text = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let list: Vec<Value> = causes
            .iter()
            .map(|it| json!({"reason": it.reason, "message": it.message, "field": it.field}))
            .collect();
        Self::new(
            422,
            "Invalid",
            format!("{qualified} \"{name}\" is invalid: {text}"),
        )
        .details(details)
        .causes(Value::Array(list))
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .details(json!({}))
    }
}
