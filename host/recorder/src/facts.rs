//! What policies have learned about the cluster: it comes from their calls, beside the engine.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use scupper_api::facts::FactObject;

use crate::line::{Learned, Line};
use crate::writer::Waiting;

/// So many objects are remembered as written. After that they are written once more.
const REMEMBERED: usize = 20_000;

/// Records facts, from whatever task a policy is called in. An object is written when it is new or has changed.
#[derive(Clone, Debug, Default)]
pub struct FactLog {
    /// `None`: nothing is recorded.
    waiting: Option<Arc<Waiting>>,
    /// Digests of what was written.
    written: Arc<Mutex<HashSet<u64>>>,
}

impl FactLog {
    pub(crate) fn new(waiting: Option<Arc<Waiting>>) -> Self {
        Self {
            waiting,
            written: Arc::default(),
        }
    }

    /// Records what this policy has learned; it is asked for only if it is recorded.
    pub fn learned(&self, policy: &str, objects: impl FnOnce() -> Vec<FactObject>) {
        let Some(waiting) = self.waiting.as_ref().filter(|waiting| waiting.is_open()) else {
            return;
        };
        let mut objects = objects();
        objects.retain(|object| self.is_new(object));
        if objects.is_empty() {
            return;
        }
        let policy = policy.to_owned();
        if let Ok(text) = serde_json::to_vec(&Line::Facts(Learned { policy, objects })) {
            waiting.add(&[&text, b"\n"]);
        }
    }

    fn is_new(&self, object: &FactObject) -> bool {
        let mut hasher = DefaultHasher::new();
        format!("{object:?}").hash(&mut hasher);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= REMEMBERED {
            written.clear();
        }
        written.insert(hasher.finish())
    }
}
