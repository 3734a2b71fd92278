//! What a node's Lease says of what policies must still undo. It is a copy of the record in the node's mark, for a Node that is
//! deleted or made anew: written when the Lease is taken and when it is released, so it costs no request of its own.

use std::collections::BTreeSet;

use scupper_engine::{Drain, ToUndo};
use scupper_report::LeasedDrain;
use tokio::sync::watch;

/// See the module. Clones share what the drain reports.
#[derive(Clone, Debug, Default)]
pub struct LeaseRecord {
    /// The Lease is ours, so its previous holder is gone; otherwise it could not be taken, and the drain runs without one.
    pub is_held: bool,
    /// What earlier drains have left.
    pub earlier: ToUndo,
    /// The policies that a killed process of this drain may have called.
    pub own: BTreeSet<String>,
    /// What stays in the Lease when it is released.
    left: watch::Sender<ToUndo>,
}

impl LeaseRecord {
    /// What a Lease says that `drain` takes now; empty: it is new.
    pub fn found(text: &str, drain: &LeasedDrain) -> Self {
        let Some(found) = LeasedDrain::from_text(text) else {
            return Self {
                is_held: true,
                ..Self::default()
            };
        };
        let left = watch::Sender::new(found.left_to_undo());
        let (earlier, own) = match found.id == drain.id {
            true => (found.to_undo, found.policies),
            false => (found.left_to_undo(), BTreeSet::new()),
        };
        Self {
            is_held: true,
            earlier,
            own,
            left,
        }
    }

    /// What is written when the Lease is taken: a process that is killed writes nothing more.
    pub fn taken(&self, drain: &LeasedDrain) -> String {
        let mut drain = drain.clone();
        drain.to_undo.clone_from(&self.earlier);
        drain.policies.extend(self.own.iter().cloned());
        drain.to_text()
    }

    /// What is written when it is released; `None`: nothing is left to undo.
    pub fn released(&self, drain: &LeasedDrain) -> Option<String> {
        let to_undo = self.left.borrow().clone();
        let drain = LeasedDrain {
            to_undo,
            policies: BTreeSet::new(),
            ..drain.clone()
        };
        (!drain.to_undo.is_empty()).then(|| drain.to_text())
    }

    /// The drain has come further.
    pub fn update(&self, drain: &Drain) {
        let to_undo = drain.to_undo();
        self.left.send_if_modified(|left| {
            let is_news = *left != to_undo;
            *left = to_undo;
            is_news
        });
    }
}
