//! What policies say of a node in Kubernetes Events, for the story of the drain in which they say it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use scupper_report::PolicyMessage;

/// What a policy's Events say was done.
pub const POLICY_ACTION: &str = "RunPolicy";

/// Words of one node that wait to be told; a policy emits few.
const MOST: usize = 32;

/// By node.
#[derive(Clone, Default)]
pub(crate) struct PolicyMessages(Arc<Mutex<BTreeMap<String, Vec<PolicyMessage>>>>);

impl PolicyMessages {
    /// A policy has said something of a node.
    pub(crate) fn add(&self, node: &str, words: PolicyMessage) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_node = messages.entry(node.to_owned()).or_default();
        if of_node.len() < MOST {
            of_node.push(words);
        }
    }

    /// What was said of a node since this was asked last.
    pub(crate) fn take(&self, node: &str) -> Vec<PolicyMessage> {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.remove(node).unwrap_or_default()
    }
}
