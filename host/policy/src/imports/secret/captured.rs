//! What outlives a call: captured secrets, what was read a moment ago from the cluster, and the values that a policy's
//! requests carried lately.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scupper_policy_spec::Capture;
use tokio::time::Instant;

use super::SecretString;

/// Values of one secret that are remembered, so that a server which shows an old one is understood. Tokens of Keystone
/// live for an hour and are asked for when they end.
const REMEMBERED: usize = 4;

/// How long a value that was read from the cluster is used: steps follow each other within seconds, and whoever rotates
/// a Secret waits longer than that.
const FRESH: Duration = Duration::from_secs(10);

/// The secrets' memory of a process. Clones share it; it lives on when policies are loaded again.
#[derive(Clone, Default)]
pub struct Secrets {
    shared: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// By policy and secret.
    slots: HashMap<(String, String), Slot>,
    /// By namespace, name and key.
    read: HashMap<[String; 3], (Instant, Answer)>,
}

/// What the cluster answered: the value, or why there is none.
pub(super) type Answer = Result<Vec<u8>, String>;

#[derive(Default)]
struct Slot {
    captured: Option<(Capture, SecretString)>,
    lately: VecDeque<SecretString>,
}

impl Secrets {
    /// Keeps a captured secret. What another origin gave before is forgotten.
    pub(crate) fn capture(&self, policy: &str, capture: &Capture, value: SecretString) {
        let mut memory = self.lock();
        let slot = memory.slot(policy, value.name());
        slot.remember(&value);
        slot.captured = Some((capture.clone(), value));
    }

    /// A captured secret, if it came from where the grant says now.
    pub(super) fn captured(&self, policy: &str, name: &str, capture: &Capture) -> Option<SecretString> {
        let mut memory = self.lock();
        let (from, value) = memory.slot(policy, name).captured.as_ref()?;
        (from == capture).then(|| value.clone())
    }

    /// Remembers a value that is about to be used.
    pub(crate) fn remember(&self, policy: &str, value: &SecretString) {
        self.lock().slot(policy, value.name()).remember(value);
    }

    /// The values that this secret had lately.
    pub(super) fn lately(&self, policy: &str, name: &str) -> Vec<SecretString> {
        self.lock().slot(policy, name).lately.iter().cloned().collect()
    }

    /// What the cluster answered a moment ago.
    pub(super) fn fresh(&self, key: &[String; 3]) -> Option<Answer> {
        let mut memory = self.lock();
        memory.read.retain(|_, (at, _)| at.elapsed() < FRESH);
        memory.read.get(key).map(|(_, answer)| answer.clone())
    }

    /// Keeps what the cluster answered for a moment.
    pub(super) fn keep(&self, key: [String; 3], answer: Answer) {
        self.lock().read.insert(key, (Instant::now(), answer));
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn slot(&mut self, policy: &str, name: &str) -> &mut Slot {
        self.slots
            .entry((policy.to_owned(), name.to_owned()))
            .or_default()
    }
}

impl Slot {
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
