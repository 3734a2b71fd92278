//! The drain that the holder of a node's Lease carries out, as it is written into the Lease: so a drain is known from its
//! first second, before anything of it is on the node.

use std::collections::BTreeSet;

use scupper_engine::{Checkpoint, Intent, Request, ToUndo};
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
    /// What policies must undo, from earlier drains and, once this one is over, from this one. The node's mark says the same;
    /// this counts where the node has none.
    pub to_undo: ToUndo,
    /// The policies that it may call until it is over, and that would have something to undo.
    pub policies: BTreeSet<String>,
}

impl LeasedDrain {
    /// The drain of a request that begins.
    pub fn of(request: &Request) -> Self {
        let is_drain = request.intent == Intent::Drain;
        let policies = request.policies.iter();
        let undoing = policies.filter(|policy| is_drain && policy.undoes_later());
        Self {
            id: request.id.clone(),
            name: request.name.clone(),
            trigger: request.trigger.clone(),
            intent: request.intent,
            to_undo: ToUndo::new(),
            policies: undoing.map(|policy| policy.name.clone()).collect(),
        }
    }

    /// The drain of a node's mark.
    pub fn of_mark(mark: &Checkpoint) -> Self {
        Self {
            id: mark.id.clone(),
            name: mark.name.clone(),
            trigger: mark.trigger.clone(),
            intent: mark.intent,
            to_undo: mark.left_to_undo(),
            policies: BTreeSet::new(),
        }
    }

    /// What policies must undo if no process continues it.
    pub fn left_to_undo(&self) -> ToUndo {
        let called = self.policies.iter().map(|policy| (policy.clone(), String::new()));
        let mut left: ToUndo = called.collect();
        left.extend(self.to_undo.clone());
        left
    }

    /// The text in the Lease.
    pub fn to_text(&self) -> String {
        let mut value = self.to_json();
        if let Value::Object(fields) = &mut value {
            fields.insert("toUndo".to_owned(), json!(self.to_undo));
            fields.insert("policies".to_owned(), json!(self.policies));
        }
        value.to_string()
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
            to_undo: to_undo_of(value.get("toUndo")),
            policies: to_undo_of(value.get("policies")).into_keys().collect(),
        })
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "trigger": self.trigger,
            "uncordons": self.intent == Intent::Uncordon,
        })
    }
}

/// An object of policies and their words, or an array of policies.
fn to_undo_of(value: Option<&Value>) -> ToUndo {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match value {
        Some(Value::Object(all)) => all
            .iter()
            .map(|(policy, words)| (policy.clone(), word(words)))
            .collect(),
        Some(Value::Array(all)) => all.iter().map(|policy| (word(policy), String::new())).collect(),
        _ => ToUndo::new(),
    }
}

#[cfg(test)]
mod tests {
    use scupper_engine::Settings;

    use super::*;

    #[test]
    fn a_written_drain_survives_a_round_trip_and_other_texts_are_none() {
        for intent in [Intent::Drain, Intent::Uncordon] {
            let request = Request {
                id: "id".to_owned(),
                name: "drain-worker-1".to_owned(),
                trigger: "command".to_owned(),
                intent,
                node: "worker-1".to_owned(),
                deadline: None,
                settings: Settings::default(),
                policies: Vec::new(),
            };
            let mut drain = LeasedDrain::of(&request);
            assert_eq!(LeasedDrain::from_text(&drain.to_text()), Some(drain.clone()));
            drain.to_undo = [("slurm".to_owned(), "it is down".to_owned())].into();
            drain.policies = ["slurm".to_owned(), "openstack".to_owned()].into();
            assert_eq!(LeasedDrain::from_text(&drain.to_text()), Some(drain));
        }
        for text in ["", "{}", "7", r#"{"id": 7, "name": "a", "trigger": "b"}"#] {
            assert_eq!(LeasedDrain::from_text(text), None, "{text}");
        }
    }
}
