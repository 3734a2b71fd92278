//! Secrets that outlive a call: captured secrets, values recently read from the cluster, and values that a policy's
//! requests recently carried.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scupper_policy_spec::Capture;
use tokio::time::Instant;

use super::SecretString;

/// Earlier values of one secret that are remembered, to recognize them in a server's response. Tokens of Keystone live
/// for an hour, and policies request new ones when they expire.
const REMEMBERED: usize = 4;

/// How long a value from the cluster is used: steps follow each other within seconds, and the rotation of a Secret
/// takes longer than this.
const FRESH: Duration = Duration::from_secs(10);

/// A process's memory of secrets. Clones share it; it survives the reload of policies.
#[derive(Clone, Default)]
pub struct Secrets {
    shared: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// By policy and secret.
    slots: HashMap<(String, String), CapturedValues>,
    /// By namespace, name and key.
    read: HashMap<[String; 3], (Instant, Answer)>,
}

/// The cluster's answer: the value, or the error.
pub(super) type Answer = Result<Vec<u8>, String>;

#[derive(Default)]
struct CapturedValues {
    /// By node: a command drains several at a time, and the end of one drain revokes its token.
    captured: BTreeMap<String, (Capture, SecretString)>,
    lately: VecDeque<SecretString>,
}

impl Secrets {
    /// Stores a secret captured for a node. A value from another origin is forgotten.
    pub(crate) fn capture(&self, (policy, node): (&str, &str), capture: &Capture, value: SecretString) {
        let mut memory = self.lock();
        let slot = memory.slot(policy, value.name());
        slot.remember(&value);
        slot.captured.insert(node.to_owned(), (capture.clone(), value));
    }

    /// A secret captured for a node, if it came from the origin in the current grant.
    pub(super) fn captured(
        &self,
        (policy, node): (&str, &str),
        name: &str,
        capture: &Capture,
    ) -> Option<SecretString> {
        let mut memory = self.lock();
        let (from, value) = memory.slot(policy, name).captured.get(node)?;
        (from == capture).then(|| value.clone())
    }

    /// Remembers a value before its use.
    pub(crate) fn remember(&self, policy: &str, value: &SecretString) {
        self.lock().slot(policy, value.name()).remember(value);
    }

    /// The recent values of this secret, and those captured for any node.
    pub(super) fn lately(&self, policy: &str, name: &str) -> Vec<SecretString> {
        let mut memory = self.lock();
        let CapturedValues { captured, lately } = memory.slot(policy, name);
        let captured = captured.values().map(|(_, value)| value);
        let older = captured.filter(|value| !lately.contains(value));
        lately.iter().chain(older).cloned().collect()
    }

    /// The cluster's recent answer.
    pub(super) fn fresh(&self, key: &[String; 3]) -> Option<Answer> {
        let mut memory = self.lock();
        memory.read.retain(|_, (at, _)| at.elapsed() < FRESH);
        memory.read.get(key).map(|(_, answer)| answer.clone())
    }

    /// Stores the cluster's answer for a moment.
    pub(super) fn keep(&self, key: [String; 3], answer: Answer) {
        self.lock().read.insert(key, (Instant::now(), answer));
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn slot(&mut self, policy: &str, name: &str) -> &mut CapturedValues {
        self.slots
            .entry((policy.to_owned(), name.to_owned()))
            .or_default()
    }
}

impl CapturedValues {
    fn remember(&mut self, value: &SecretString) {
        self.lately.retain(|known| known != value);
        self.lately.push_front(value.clone());
        self.lately.truncate(REMEMBERED);
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}
