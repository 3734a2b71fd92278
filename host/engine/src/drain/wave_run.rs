//! A wave of the agreed plan and how far it has come.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{Time, Uid, Wave};

/// See the module.
#[derive(Debug)]
pub(super) struct WaveRun {
    wave: Wave,
    started: Option<Time>,
    ended: bool,
    /// Those of its pods that are still there, in its order.
    left: Vec<Uid>,
    /// Pods that came after it had begun: its hooks run again for them, and they wait for that.
    late: BTreeSet<Uid>,
    /// An earlier process had begun it, and this one has not reported it.
    is_unreported: bool,
}

impl WaveRun {
    pub(super) fn new(wave: Wave) -> Self {
        Self {
            left: wave.pods.clone(),
            wave,
            started: None,
            ended: false,
            late: BTreeSet::new(),
            is_unreported: false,
        }
    }

    /// An earlier process had begun it, with these late pods. `until`: when it no longer holds up the next one.
    pub(super) fn resume(&mut self, until: Option<Time>, late: &BTreeSet<Uid>, now: Time) {
        self.begin(now);
        if let Some(until) = until {
            self.hold_up_for(until.since(now), now);
        }
        let late = self.left.iter().filter(|uid| late.contains(*uid));
        self.late = late.cloned().collect();
        self.is_unreported = true;
    }

    /// It has begun, and this process has reported that.
    pub(super) const fn is_reported(&self) -> bool {
        self.has_begun() && !self.is_unreported
    }

    /// Whether it is to be reported that an earlier process had begun it; asking forgets it.
    pub(super) const fn take_unreported(&mut self) -> bool {
        core::mem::replace(&mut self.is_unreported, false)
    }

    /// With the pods that have joined it.
    pub(super) const fn wave(&self) -> &Wave {
        &self.wave
    }

    /// Those of its pods that are still there, in its order.
    pub(super) fn left(&self) -> &[Uid] {
        &self.left
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.started.is_some()
    }

    /// It has begun, also for this pod.
    pub(super) fn has_begun_for(&self, pod: &Uid) -> bool {
        self.has_begun() && !self.late.contains(pod)
    }

    /// Pods that came after it had begun, and for which its hooks have not finished.
    pub(super) fn late(&self) -> impl Iterator<Item = &Uid> {
        self.late.iter()
    }

    /// Pods of it wait for its hooks.
    pub(super) fn waits_for_hooks(&self) -> bool {
        match self.has_begun() {
            true => self.has_late_pods(),
            false => !self.left.is_empty(),
        }
    }

    /// Its hooks are to run again.
    pub(super) fn has_late_pods(&self) -> bool {
        !self.late.is_empty()
    }

    /// Its hooks have run again.
    pub(super) fn admit_late_pods(&mut self) {
        self.late.clear();
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

    /// When it no longer holds the next wave up by its own limit, although pods of it are still there.
    pub(super) fn overdue_at(&self) -> Option<Time> {
        Some(self.started? + self.wave.timeout?)
    }

    pub(super) fn contains(&self, pod: &Uid) -> bool {
        self.wave.pods.contains(pod)
    }

    /// A pod that came later joins it, and perhaps waits for its hooks.
    pub(super) fn add(&mut self, pod: Uid, waits_for_hooks: bool) {
        if self.has_begun() && waits_for_hooks {
            self.late.insert(pod.clone());
        }
        self.left.push(pod.clone());
        self.wave.pods.push(pod);
        self.ended = false;
    }

    /// It holds the next wave up from now on for at most this long.
    pub(super) fn hold_up_for(&mut self, timeout: Duration, now: Time) {
        let timeout = timeout + self.started.map_or(Duration::ZERO, |started| now.since(started));
        self.wave.timeout = Some(self.wave.timeout.map_or(timeout, |old| old.min(timeout)));
    }

    /// It is not waited for any more.
    pub(super) fn remove(&mut self, pod: &Uid) {
        self.wave.pods.retain(|other| other != pod);
        self.pod_gone(pod);
    }

    pub(super) fn pod_gone(&mut self, pod: &Uid) {
        self.left.retain(|other| other != pod);
        self.late.remove(pod);
    }
}
