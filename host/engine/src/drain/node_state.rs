//! The node as last seen, by events that may be late and by our own writes.

use alloc::string::String;

use crate::{Checkpoint, Node, Uid};

/// What we know of the node.
#[derive(Debug, Default)]
pub(super) struct NodeState {
    /// The one node that all of this is about.
    uid: Option<Uid>,
    node: Option<Node>,
    /// The version of a write of ours that no event has shown, where versions cannot be compared, and whether it
    /// left the node cordoned.
    unseen_write: Option<(String, bool)>,
    /// The version that a save made of a state that we may not have seen.
    saved: Option<String>,
}

/// What an event about the node means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeNews {
    /// Older than what we know.
    Old,
    /// Nothing that matters, or the first news.
    Fresh,
    /// It was cordoned and is not any more.
    Uncordoned,
    /// It is not there, or another node has its name.
    Gone,
}

impl NodeState {
    pub(super) fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// Which node it is; known before it was seen when an earlier process has said so.
    pub(super) const fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }

    /// An earlier process has dealt with this node.
    pub(super) fn expect(&mut self, uid: Uid) {
        self.uid = Some(uid);
    }

    pub(super) fn is_cordoned(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.unschedulable)
    }

    /// The version of a state that was seen, for a write that must not overwrite those of others. After a save there is
    /// none until an event has caught up with it: between what was seen and the save others may have written.
    pub(super) fn version(&self) -> Option<&String> {
        let node = self.node.as_ref()?;
        self.saved.is_none().then_some(&node.resource_version)
    }

    pub(super) fn apply(&mut self, node: Option<Node>) -> NodeNews {
        let Some(node) = node else {
            return NodeNews::Gone;
        };
        if *self.uid.get_or_insert_with(|| node.uid.clone()) != node.uid {
            return NodeNews::Gone;
        }
        if let Some(known) = &self.node
            && self.is_old(&node, known)
        {
            return NodeNews::Old;
        }
        self.unseen_write = None;
        self.saved
            .take_if(|saved| is_newer(&node.resource_version, saved) != Some(false));
        let lifted = self.is_cordoned() && !node.unschedulable;
        self.node = Some(node);
        if lifted {
            NodeNews::Uncordoned
        } else {
            NodeNews::Fresh
        }
    }

    /// The watch shows states older than our own write for a while, and they look as if it were undone.
    /// Versions that are numbers are compared. Others show nothing, so everything is taken for old
    /// until the version of our write appears, or a state that cannot be from before it.
    fn is_old(&self, node: &Node, known: &Node) -> bool {
        match is_newer(&node.resource_version, &known.resource_version) {
            Some(newer) => !newer,
            None => self
                .unseen_write
                .as_ref()
                .is_some_and(|(version, unschedulable)| {
                    *version != node.resource_version && *unschedulable != node.unschedulable
                }),
        }
    }

    /// A cordon or an uncordon of ours succeeded: the node is what we made of the state that was seen, and that is
    /// news, unless events were quicker than the answer and have shown it, or a later state, already.
    pub(super) fn apply_write(
        &mut self,
        version: String,
        unschedulable: bool,
        mark: Option<Checkpoint>,
    ) -> bool {
        let Some(node) = &mut self.node else {
            return false;
        };
        if is_newer(&node.resource_version, &version) == Some(true) {
            return false;
        }
        if is_newer(&version, &node.resource_version).is_none() {
            self.unseen_write = Some((version.clone(), unschedulable));
        }
        node.unschedulable = unschedulable;
        node.checkpoint = mark;
        node.resource_version = version;
        self.saved = None;
        true
    }

    /// Our checkpoint was written over whatever state there was.
    pub(super) fn apply_save(&mut self, version: String, mark: Option<Checkpoint>) {
        let Some(node) = &mut self.node else {
            return;
        };
        if is_newer(&version, &node.resource_version) == Some(false) {
            return;
        }
        node.checkpoint = mark;
        if version != node.resource_version {
            self.saved = Some(version);
        }
    }
}

/// Whether a version is at least as new as another; `None` when they are no numbers and cannot be compared.
fn is_newer(version: &str, other: &str) -> Option<bool> {
    if version == other {
        return Some(true);
    }
    let version: u64 = version.parse().ok()?;
    let other: u64 = other.parse().ok()?;
    Some(version >= other)
}
