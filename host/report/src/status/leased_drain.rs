//! The drain that the holder of a node's Lease carries out, as it is written into the Lease: so a drain is known from its
//! first second, before anything of it is on the node.

use scupper_engine::{Intent, Request};
use serde_json::{Value, json};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedDrain {
    /// The request's id.
    pub id: String,
    /// The request's name.
    pub name: String,
    /// The request's trigger.
    pub trigger: String,
    /// Drain or uncordon.
    pub intent: Intent,
}

impl LeasedDrain {
    /// The drain of a request.
    pub fn of(request: &Request) -> Self {
        Self {
            id: request.id.clone(),
            name: request.name.clone(),
            trigger: request.trigger.clone(),
            intent: request.intent,
        }
    }

    /// The text in the Lease.
    pub fn to_text(&self) -> String {
        self.to_json().to_string()
    }

    /// Reads the text of a Lease; `None`: Scupper did not write it.
    pub fn from_text(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let field = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Self {
            id: field("id")?,
            name: field("name")?,
            trigger: field("trigger")?,
            intent: match value.get("uncordons") {
                Some(Value::Bool(true)) => Intent::Uncordon,
                _ => Intent::Drain,
            },
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "trigger": self.trigger,
            "uncordons": self.intent == Intent::Uncordon,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_written_drain_survives_a_round_trip_and_other_texts_are_none() {
        for intent in [Intent::Drain, Intent::Uncordon] {
            let request = Request {
                intent,
                ..fixture::request()
            };
            let drain = LeasedDrain::of(&request);
            assert_eq!(LeasedDrain::from_text(&drain.to_text()), Some(drain));
        }
        for text in ["", "{}", "7", r#"{"id": 7, "name": "a", "trigger": "b"}"#] {
            assert_eq!(LeasedDrain::from_text(text), None, "{text}");
        }
    }
}
