//! Where every node of one command stands, told by whoever deals with it and read by whoever shows it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scupper_engine::{Drain, Notice, Time, Uid};

use super::node_progress::{NodeProgress, NodeSnapshot};
use super::{Size, frame};
use crate::NodeStatus;

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
    /// So many nodes are to be dealt with.
    pub fn expect(&self, nodes: usize) {
        self.nodes().all = nodes;
    }

    /// A node's turn has come. `words`: how it stands, until more is known.
    pub fn begin(&self, node: &str, now: Time, words: &str) {
        let progress = NodeProgress::begin(node, now, words.to_owned());
        self.nodes().in_progress.insert(node.to_owned(), progress);
    }

    /// The engine tells something of a node.
    pub fn notice(&self, node: &str, now: Time, notice: &Notice) {
        self.with(node, |progress| progress.notice(now, notice));
    }

    /// The engine's loop has turned.
    pub fn turned(&self, now: Time, drain: &Drain) {
        self.with(&drain.request().node, |progress| progress.turned(now, drain));
    }

    /// The API server shows something new of a node that somebody else drains for this LifecycleEvent.
    pub fn seen(&self, event: &str, uid: &Uid, status: &NodeStatus) {
        self.with(&status.node.name, |progress| {
            progress.seen(event, uid, status.clone())
        });
    }

    /// Nothing is done at a node any more.
    pub fn over(&self, node: &str) {
        let mut nodes = self.nodes();
        nodes.finished += 1;
        nodes.in_progress.remove(node);
    }

    /// The lines that this is worth.
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
