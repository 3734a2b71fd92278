//! What policies have learned about the cluster: it comes from their calls, beside the engine.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, PoisonError};

use scupper_api::facts::{FactObject, FactType as _, Owner, Place};

use crate::line::{Learned, Line};
use crate::recorder::Waiting;

/// Records facts, from whatever task a policy is called in. Each object is written when it is new or has changed.
#[derive(Clone, Debug, Default)]
pub struct FactLog {
    /// `None`: nothing is recorded.
    waiting: Option<Arc<Waiting>>,
    written: Arc<Mutex<HashMap<Key, u64>>>,
}

/// The kind of an object, and where it is.
type Key = (Discriminant<FactObject>, String, Place);

impl FactLog {
    pub(crate) fn new(waiting: Option<Arc<Waiting>>) -> Self {
        Self {
            waiting,
            written: Arc::default(),
        }
    }

    /// Records what this policy has learned; it is asked for only if it is recorded.
    pub fn learned(&self, policy: &str, objects: impl FnOnce() -> Vec<FactObject>) {
        let Some(waiting) = &self.waiting else {
            return;
        };
        let objects: Vec<_> = objects()
            .into_iter()
            .filter(|object| self.is_new(object))
            .collect();
        if objects.is_empty() {
            return;
        }
        let policy = policy.to_owned();
        if let Ok(text) = serde_json::to_vec(&Line::Facts(Learned { policy, objects })) {
            // Whoever records the engine says why no more is written.
            let _added = waiting.add(&[&text, b"\n"]);
        }
    }

    fn is_new(&self, object: &FactObject) -> bool {
        let kind = Owner::of(object).map_or_else(String::new, |owner| owner.reference.kind.clone());
        let key = (discriminant(object), kind, object.place());
        let mut hasher = DefaultHasher::new();
        format!("{object:?}").hash(&mut hasher);
        let hash = hasher.finish();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(key, hash) != Some(hash)
    }
}
