//! A message of a policy about a node, sent as a Kubernetes Event; for people and for programs.

use serde_json::{Value, json};

use super::messages::one_line;

/// A message of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyMessage {
    /// The policy.
    pub policy: String,
    /// The message needs attention.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub note: String,
}

/// The note of the Event, with the policy's name.
pub fn policy_event_note(policy: &str, note: &str) -> String {
    format!("policy {policy}: {note}")
}

impl PolicyMessage {
    /// Parses the note of such an Event.
    pub fn of_note(reason: &str, warning: bool, note: &str) -> Option<Self> {
        let (policy, note) = note.strip_prefix("policy ")?.split_once(": ")?;
        Some(Self {
            policy: policy.to_owned(),
            warning,
            reason: reason.to_owned(),
            note: note.to_owned(),
        })
    }

    /// The message in one line.
    pub fn line(&self) -> String {
        let warning = if self.warning { "warning: " } else { "" };
        one_line(&format!("{}: {warning}{}", self.policy, self.note))
    }

    /// The message as JSON fields.
    pub fn to_json(&self) -> Value {
        json!({
            "kind": "policyEvent", "policy": self.policy, "warning": self.warning, "reason": self.reason,
            "message": self.note,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_events_note_is_read_as_it_was_written() {
        let words = PolicyMessage {
            policy: "slurm".to_owned(),
            warning: true,
            reason: "StaysDrained".to_owned(),
            note: "node-1 stays DRAIN: ticket 7".to_owned(),
        };
        let note = policy_event_note(&words.policy, &words.note);
        assert_eq!(
            PolicyMessage::of_note("StaysDrained", true, &note),
            Some(words.clone())
        );
        assert_eq!(words.line(), "slurm: warning: node-1 stays DRAIN: ticket 7");
        assert_eq!(PolicyMessage::of_note("Drained", false, "drain-a after 1s"), None);
    }
}
