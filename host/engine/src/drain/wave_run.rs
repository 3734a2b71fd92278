//! A wave of the agreed plan and how far it has come.

use crate::{Time, Uid, Wave};

/// See the module.
#[derive(Debug)]
pub(super) struct WaveRun {
    wave: Wave,
    started: Option<Time>,
    ended: bool,
}

impl WaveRun {
    pub(super) const fn new(wave: Wave) -> Self {
        Self {
            wave,
            started: None,
            ended: false,
        }
    }

    /// With the pods that have joined it.
    pub(super) const fn wave(&self) -> &Wave {
        &self.wave
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.started.is_some()
    }

    /// The next wave may begin.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.started = Some(now);
    }

    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    /// When it no longer holds the next wave up, although pods of it are still there.
    pub(super) fn overdue_at(&self) -> Option<Time> {
        Some(self.started? + self.wave.timeout?)
    }

    pub(super) fn contains(&self, pod: &Uid) -> bool {
        self.wave.pods.contains(pod)
    }

    /// A pod that came later joins it.
    pub(super) fn add(&mut self, pod: Uid) {
        self.wave.pods.push(pod);
        self.ended = false;
    }

    pub(super) fn remove(&mut self, pod: &Uid) {
        self.wave.pods.retain(|other| other != pod);
    }
}
