//! The progress of every node of one command, shared between the tasks that update it and the display.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scupper_engine::{Drain, Notice, Time, Uid};

use super::frame;
use super::node_progress::{NodeProgress, NodeSnapshot};
use crate::{Estimate, NodeStatus};
use scupper_screen::Size;

/// The nodes of one command.
#[derive(Clone, Debug, Default)]
pub struct ProgressBoard(Arc<Mutex<Nodes>>);

#[derive(Debug, Default)]
struct Nodes {
    all: usize,
    finished: usize,
    in_progress: BTreeMap<String, NodeProgress>,
}

impl ProgressBoard {
    /// Sets the number of nodes to process.
    pub fn expect(&self, nodes: usize) {
        self.nodes().all = nodes;
    }

    /// Starts a node. `words`: its state, until more is known.
    pub fn begin(&self, node: &str, now: Time, words: &str) {
        let progress = NodeProgress::begin(node, now, words.to_owned());
        self.nodes().in_progress.insert(node.to_owned(), progress);
    }

    /// Records a notice of the engine about a node.
    pub fn notice(&self, node: &str, now: Time, notice: &Notice) {
        self.with(node, |progress| progress.notice(now, notice));
    }

    /// Records that the engine's loop has run. `estimate`: when the drain will probably end, if that is known.
    pub fn turned(&self, now: Time, drain: &Drain, estimate: impl FnOnce() -> Option<Estimate>) {
        self.with(&drain.request().node, |progress| {
            progress.turned(now, drain, estimate)
        });
    }

    /// Records new state from the API server for a node that another process drains for this LifecycleEvent.
    pub fn observe(&self, event: &str, uid: &Uid, status: &NodeStatus) {
        self.with(&status.node.name, |progress| {
            progress.observe(event, uid, status.clone())
        });
    }

    /// Removes a node whose operation has ended.
    pub fn finish(&self, node: &str) {
        let mut nodes = self.nodes();
        nodes.finished += 1;
        nodes.in_progress.remove(node);
    }

    /// The lines to display.
    pub fn frame(&self, room: Size, now: Time) -> Vec<String> {
        let mut nodes = self.nodes();
        let (finished, all) = (nodes.finished, nodes.all);
        let all_progress = nodes.in_progress.values_mut();
        let snapshots: Vec<NodeSnapshot> = all_progress.map(|progress| progress.snapshot(now)).collect();
        drop(nodes);
        frame::lines(&snapshots, (finished, all), room, now)
    }

    fn with(&self, node: &str, does: impl FnOnce(&mut NodeProgress)) {
        if let Some(progress) = self.nodes().in_progress.get_mut(node) {
            does(progress);
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
