//! A drain that has ended without its driver, which reports that only when it is back: a command has cancelled or continued it.

use std::time::Duration;

use scupper_engine::Checkpoint;
use scupper_report::{NodeStatus, release_text};
use tokio::time::Instant;

use super::queue_wait::QueueWait;

/// How long a driver may take to report that the drain has ended, once the node shows that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the node has shown of the end of one drain.
#[derive(Debug, Default)]
pub(super) struct UnreportedEnd {
    /// The node has shown a mark of the drain.
    was_marked: bool,
    /// The mark says that it has failed.
    has_failed: bool,
    /// The drain has ended: until when its driver may report that.
    until: Option<Instant>,
    /// It has not in time.
    is_certain: bool,
}

impl UnreportedEnd {
    /// `id`: of the drain and of its LifecycleEvent.
    pub(super) fn observe(&mut self, id: &str, status: &NodeStatus) {
        let mark = status.node.checkpoint.as_ref().filter(|mark| mark.id == id);
        self.was_marked |= mark.is_some();
        let mut events = status.lifecycle_events.iter();
        let is_deleted = events.any(|event| event.uid == id && event.deleting);
        self.has_failed = !is_deleted && mark.is_some_and(|mark| !mark.ended_well);
        let is_over = (self.was_marked || is_deleted) && !mark.is_some_and(Checkpoint::is_under_way);
        let until = self.until.unwrap_or_else(|| Instant::now() + PATIENCE);
        self.until = is_over.then_some(until);
    }

    /// When its driver should have reported it.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.until
    }

    /// It has ended: no process carries it out. To be asked when it is due, and again if it is not certain.
    pub(super) async fn is_certain(&mut self, queue: &QueueWait, node: &str, id: &str) -> bool {
        self.until = Some(Instant::now() + PATIENCE);
        self.is_certain = queue.is_free_of(node, id).await;
        self.is_certain
    }

    /// What its LifecycleEvent would be, as far as the node shows it; `None`: deleted, or the node says more.
    pub(super) fn state(&self) -> Option<String> {
        self.has_failed.then(|| "Failed".to_owned())
    }

    /// What becomes of its LifecycleEvent.
    pub(super) fn text(&self, event: &str) -> Option<String> {
        self.is_certain
            .then(|| release_text(&format!("LifecycleEvent {event}")))
    }
}
