//! The wait for the node's volumes, after its last pod and before the last hooks: a phase of its own. It does not include
//! volumes of pods that stay.
//!
//! A list shows what is attached, the watch shows changes, and another list must confirm that nothing is attached any
//! more: what is not known does not count as detached.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::Drain;
use super::backoff::Backoff;
use super::outbox::Job;
use super::replies::VolumesReply;
use crate::{AttachedVolume, HumanDuration, Notice, Outcome, Phase, Task, Time, VolumeWait, VolumesLeft};

/// The wait ends this long before the deadline, so that the last hooks and the last list have some time.
const RESERVE: Duration = Duration::from_secs(10);
/// A process that starts when the wait is already over still lists once, and waits at most this long for the answer.
const FIRST_LIST: Duration = Duration::from_secs(5);
/// How often volumes are listed while their watch reports nothing.
const SILENCE: Duration = Duration::from_secs(60);
/// Reported before the first list has been answered.
const UNANSWERED: &str = "the API server has not answered yet";

/// See the module.
#[derive(Debug, Default)]
pub(super) struct VolumeState {
    /// When the wait began, perhaps in an earlier process.
    since: Option<Time>,
    /// When this process began to wait.
    entered: Option<Time>,
    /// What is attached, as seen last.
    seen: Option<Vec<AttachedVolume>>,
    /// `seen` is from a list, and no event has come since that was requested.
    is_listed: bool,
    /// Why the last list failed.
    problem: Option<String>,
    /// Counts events, to order them against lists.
    events: u64,
    next_list: Time,
    tries: u32,
    /// What was reported last.
    reported: Option<VolumesLeft>,
    /// When the wait ended.
    settled: Option<Time>,
    /// What was still attached then.
    left: Option<VolumesLeft>,
    /// Something was attached: the beginning of the wait is saved.
    is_saved: bool,
}

impl VolumeState {
    /// An earlier process has begun to wait.
    pub(super) fn restored(since: Option<Time>) -> Self {
        Self {
            since,
            is_saved: since.is_some(),
            ..Self::default()
        }
    }

    /// The node looks empty, perhaps not for the first time: pods that came meanwhile may have had volumes, which an
    /// earlier list does not show. The time limit still counts from the first wait.
    pub(super) fn begin_again(&mut self) {
        *self = Self {
            events: self.events + 1,
            is_saved: self.is_saved,
            ..Self::restored(self.since)
        };
    }

    /// Since when it waits, if that is saved.
    pub(super) fn saved_since(&self) -> Option<Time> {
        self.since.filter(|_| self.is_saved)
    }

    /// What was still attached when the wait ended.
    pub(super) const fn left(&self) -> Option<&VolumesLeft> {
        self.left.as_ref()
    }

    /// How long the volumes have held the drain up.
    pub(super) fn held_for(&self, now: Time) -> Duration {
        let since = self.since.filter(|_| self.is_saved || self.left.is_some());
        let until = self.settled.unwrap_or(now);
        since.map_or(Duration::ZERO, |since| until.since(since))
    }
}

impl Drain {
    /// The drain waits for volumes, and did not do so already before it ended well.
    pub(super) const fn waits_for_volumes(&self) -> bool {
        self.request.settings.wait_for_volumes.is_some() && !self.checkpoint_state.ended_well()
    }

    /// Pods that come while it waits leave before the last hooks: another list follows.
    pub(super) fn detach(&mut self) {
        if self.is_shown_empty() && self.volumes_are_settled() {
            self.verification.begin();
            self.enter(Phase::Verifying);
        }
    }

    /// Whether the volumes are detached, or no longer waited for.
    fn volumes_are_settled(&mut self) -> bool {
        let Some(wait) = self.request.settings.wait_for_volumes else {
            return true;
        };
        self.volumes.since.get_or_insert(self.now);
        self.volumes.entered.get_or_insert(self.now);
        let left = self.volumes_left();
        if left.is_none() || self.volumes_end().is_some_and(|end| self.now >= end) {
            return self.settle_volumes(wait, left);
        }
        self.report_volumes(left);
        self.list_volumes();
        false
    }

    /// The wait is over.
    fn settle_volumes(&mut self, wait: VolumeWait, left: Option<VolumesLeft>) -> bool {
        self.volumes.settled = Some(self.now);
        self.volumes.left.clone_from(&left);
        if left.is_some() || self.volumes.reported.is_some() {
            self.outbox.notify(Notice::VolumesSettled { left: left.clone() });
        }
        let Some(left) = left.filter(|_| wait.or_fail) else {
            return true;
        };
        let waited = HumanDuration(self.volumes.held_for(self.now));
        let message = format!("the volumes of the node were not detached within {waited}: {left}");
        self.stop(Outcome::Failed { message });
        false
    }

    /// What keeps the volumes from counting as detached; `None`: they are.
    fn volumes_left(&self) -> Option<VolumesLeft> {
        let seen = self.volumes.seen.iter().flatten();
        let attached: Vec<_> = seen.filter(|volume| !self.is_used(volume)).cloned().collect();
        if !attached.is_empty() {
            return Some(VolumesLeft::Attached(attached));
        }
        let message = || {
            self.volumes
                .problem
                .clone()
                .unwrap_or_else(|| String::from(UNANSWERED))
        };
        (!self.volumes.is_listed).then(|| VolumesLeft::Unknown { message: message() })
    }

    /// Whether a pod that stays uses it.
    fn is_used(&self, volume: &AttachedVolume) -> bool {
        let Some(claim) = &volume.claim else {
            return false;
        };
        let mut pods = self.cluster.pods().values();
        pods.any(|pod| pod.id.namespace == claim.namespace && pod.volume_claims.contains(&claim.name))
    }

    /// Reports what the drain waits for, once something is known and when it changes.
    fn report_volumes(&mut self, left: Option<VolumesLeft>) {
        let is_known = self.volumes.seen.is_some() || self.volumes.problem.is_some();
        let (Some(left), Some(since), Some(until)) =
            (left.filter(|_| is_known), self.volumes.since, self.volumes_end())
        else {
            return;
        };
        if !left.attached().is_empty() && !core::mem::replace(&mut self.volumes.is_saved, true) {
            // A process that continues from here must not wait as long again.
            self.checkpoint_state.change();
        }
        // Without attached volumes the drain only waits for a list to confirm that.
        let is_news = self.volumes.problem.is_some() || !left.attached().is_empty();
        if is_news && self.volumes.reported.as_ref() != Some(&left) {
            self.volumes.reported = Some(left.clone());
            self.outbox.notify(Notice::AwaitsVolumes { left, since, until });
        }
    }

    fn list_volumes(&mut self) {
        if self.now >= self.volumes.next_list && !self.outbox.lists_volumes() {
            let mark = self.volumes.events;
            self.outbox.push(Task::ListVolumes, Job::Volumes { mark });
        }
    }

    /// The watch reports what is attached now. If that is nothing, a list must confirm it.
    pub(super) fn apply_volumes(&mut self, volumes: Vec<AttachedVolume>) {
        self.volumes.events += 1;
        self.volumes.seen = Some(volumes);
        self.volumes.is_listed = false;
        self.volumes.problem = None;
        if !matches!(self.volumes_left(), Some(VolumesLeft::Attached(_))) {
            self.volumes.next_list = self.now;
        }
    }

    /// A list was answered. Events since it was requested are newer.
    pub(super) fn volumes_answered(&mut self, mark: u64, reply: VolumesReply) {
        match reply {
            VolumesReply::Volumes(volumes) => {
                self.volumes.tries = 0;
                self.volumes.problem = None;
                if self.volumes.events == mark {
                    self.volumes.seen = Some(volumes);
                    self.volumes.is_listed = true;
                    self.volumes.next_list = self.now + SILENCE;
                }
            }
            VolumesReply::Failed { message } => {
                let retry = Backoff::UNREACHABLE.after(self.now, self.volumes.tries, &self.request.id);
                self.volumes.next_list = retry;
                self.volumes.tries = self.volumes.tries.saturating_add(1);
                self.volumes.problem = Some(message.clone());
                let task = String::from(Task::ListVolumes.name());
                self.outbox.notify(Notice::Retrying { task, message });
            }
        }
    }

    /// When the wait ends at the latest.
    fn volumes_end(&self) -> Option<Time> {
        let (wait, since) = (self.request.settings.wait_for_volumes?, self.volumes.since?);
        let usual = since + wait.at_most;
        let end = self
            .request
            .deadline
            .map_or(usual, |deadline| usual.min(deadline - RESERVE));
        let has_listed = self.volumes.seen.is_some() || self.volumes.problem.is_some();
        let first_list = self.volumes.entered.filter(|_| !has_listed);
        Some(first_list.map_or(end, |entered| end.max(entered + FIRST_LIST)))
    }

    /// When the wait must be checked.
    pub(super) fn volume_timers(&self) -> impl Iterator<Item = Time> {
        let waits = self.is_waiting_for_volumes() && self.outcome.is_none();
        let timers = waits.then(|| self.volumes_end().into_iter().chain([self.volumes.next_list]));
        timers.into_iter().flatten()
    }

    /// The deadline passes while the drain waits: its summary names the volumes.
    pub(super) fn note_volumes_left(&mut self) {
        if self.is_waiting_for_volumes() {
            self.volumes.left = self.volumes_left();
        }
    }

    fn is_waiting_for_volumes(&self) -> bool {
        self.phase == Phase::Detaching && self.volumes.entered.is_some()
    }
}
