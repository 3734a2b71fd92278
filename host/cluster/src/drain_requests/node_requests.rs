//! Which requests a driver keeps: those of its node, and of these no more than fit.

use std::collections::BTreeMap;

use super::super::sieve::Sieve;
use super::super::transport::escaped;
use super::super::wire::Object as _;
use super::wire::{NODE_LABEL, WireRequest};

/// What the requests of one node and namespace may take together.
const NODE_BYTES: usize = 8 * 1024 * 1024;
/// The longest value of a label.
const LABEL_BYTES: usize = 63;

/// Keeps the requests of a node.
#[derive(Debug)]
pub(super) struct NodeRequests {
    node: String,
    /// What each that is kept takes, by UID.
    taken: BTreeMap<String, usize>,
}

impl NodeRequests {
    pub(super) fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            taken: BTreeMap::new(),
        }
    }
}

impl Sieve<WireRequest> for NodeRequests {
    /// node-drainer labels each of its requests with the node, unless the name is too long for a label.
    fn other_selector(&self) -> Option<String> {
        let is_label = self.node.len() <= LABEL_BYTES;
        is_label.then(|| {
            format!(
                "labelSelector={}",
                escaped(&format!("{NODE_LABEL}={}", self.node))
            )
        })
    }

    fn begin_list(&mut self) {
        self.taken.clear();
    }

    fn keeps(&mut self, request: &mut WireRequest) -> bool {
        let uid = request.meta().uid.clone();
        self.taken.remove(&uid);
        if !request.is_for(&self.node) {
            return false;
        }
        let others: usize = self.taken.values().sum();
        if others.saturating_add(request.bytes) > NODE_BYTES {
            let most = NODE_BYTES / (1024 * 1024);
            request.refuse(format!(
                "the DrainRequests of this node have more than {most} MiB together"
            ));
        }
        self.taken.insert(uid, request.bytes);
        true
    }

    fn forget(&mut self, request: &WireRequest) {
        self.taken.remove(&request.meta().uid);
    }
}
