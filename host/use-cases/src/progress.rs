//! How far a command is that looks at many nodes. It must not know how that is shown.

use std::sync::{Arc, Mutex, PoisonError};

/// What has been done of how much, in clones the same.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Stage>>);

/// A part of the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stage {
    /// What is done with each node: `planned`.
    pub name: &'static str,
    /// With so many nodes it is.
    pub done: usize,
    /// All nodes; 0: nothing has begun.
    pub of: usize,
}

impl Progress {
    /// Begins a part.
    pub fn begin(&self, name: &'static str, of: usize) {
        self.change(|stage| *stage = Stage { name, done: 0, of });
    }

    /// One more node is done.
    pub fn step(&self) {
        self.change(|stage| stage.done += 1);
    }

    /// The part under way.
    pub fn stage(&self) -> Stage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Stage)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
