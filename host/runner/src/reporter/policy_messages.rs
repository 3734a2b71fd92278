//! Kubernetes Events that policies emit about a node, which the drain also prints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use scupper_report::PolicyMessage;

/// The action of a policy's Events.
pub const POLICY_ACTION: &str = "RunPolicy";

/// The most messages of one node that wait to be printed; a policy emits few.
const MOST: usize = 32;

/// The messages that wait, by node.
#[derive(Clone, Default)]
pub struct PolicyMessages(Arc<Mutex<BTreeMap<String, Vec<PolicyMessage>>>>);

impl PolicyMessages {
    /// Adds a policy's message about a node.
    pub fn add(&self, node: &str, words: PolicyMessage) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_node = messages.entry(node.to_owned()).or_default();
        if of_node.len() < MOST {
            of_node.push(words);
        }
    }

    /// Takes the messages about a node since the last call.
    pub fn take(&self, node: &str) -> Vec<PolicyMessage> {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.remove(node).unwrap_or_default()
    }
}
