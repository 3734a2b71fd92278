//! Only one process drains a node at a time: it holds the node's Lease, and every other process waits.
//!
//! ```text
//!  node_leases (takes, renews, releases) ─► expiry_tracker (by our own observation) ─► holder (who, and dead?)
//!        └──────► lease_record (what policies must still undo, for a Node that is made anew)
//! ```
//!
//! A driver holds the Lease only while it drains: an idle driver sends no request for it. Nothing here knows how a drain
//! runs.
#![deny(missing_docs)]

mod expiry_tracker;
mod holder;
mod lease_reader;
mod lease_record;
mod node_leases;
mod observer;

pub use expiry_tracker::ObservedLease;
pub use holder::{HOLDER_ANNOTATION, HolderIdentity};
pub use lease_reader::{HolderLiveness, LeaseReader};
pub use lease_record::LeaseRecord;
pub use node_leases::{HeldLease, NodeLeases};
pub use observer::LeaseObserver;
