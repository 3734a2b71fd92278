//! Where every node of one command stands, told by whoever deals with it and read by whoever shows it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scupper_engine::{Drain, Notice, Time, Uid};

use super::course::{Course, Standing};
use super::{Size, frame};
use crate::NodeStatus;

/// The nodes of one command.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Nodes>>);

#[derive(Debug, Default)]
struct Nodes {
    all: usize,
    over: usize,
    under_way: BTreeMap<String, Course>,
}

impl Board {
    /// So many nodes are to be dealt with.
    pub fn expect(&self, nodes: usize) {
        self.nodes().all = nodes;
    }

    /// A node's turn has come. `words`: how it stands, until more is known.
    pub fn begin(&self, node: &str, now: Time, words: &str) {
        let course = Course::begin(node, now, words.to_owned());
        self.nodes().under_way.insert(node.to_owned(), course);
    }

    /// The engine tells something of a node.
    pub fn notice(&self, node: &str, now: Time, notice: &Notice) {
        self.with(node, |course| course.notice(now, notice));
    }

    /// The engine's loop has turned.
    pub fn turned(&self, now: Time, drain: &Drain) {
        self.with(&drain.request().node, |course| course.turned(now, drain));
    }

    /// The API server shows something new of a node that somebody else drains for this LifecycleEvent.
    pub fn seen(&self, event: &str, uid: &Uid, status: &NodeStatus) {
        self.with(&status.node.name, |course| {
            course.seen(event, uid, status.clone())
        });
    }

    /// Nothing is done at a node any more.
    pub fn over(&self, node: &str) {
        let mut nodes = self.nodes();
        nodes.over += 1;
        nodes.under_way.remove(node);
    }

    /// The lines that this is worth.
    pub fn frame(&self, room: Size, now: Time) -> Vec<String> {
        let mut nodes = self.nodes();
        let (over, all) = (nodes.over, nodes.all);
        let courses = nodes.under_way.values_mut();
        let standings: Vec<Standing> = courses.map(|course| course.standing(now)).collect();
        drop(nodes);
        frame::lines(&standings, (over, all), room, now)
    }

    fn with(&self, node: &str, does: impl FnOnce(&mut Course)) {
        if let Some(course) = self.nodes().under_way.get_mut(node) {
            does(course);
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
