//! Only one process drains a node at a time: it holds the node's Lease, and every other process waits.
//!
//! ```text
//!  leased_runner ─► node_leases (takes, renews, releases) ─► expiry_tracker (by our own observation) ─► holder (who, and dead?)
//!        └──────► runner, as long as the Lease is ours
//! ```
//!
//! A driver holds the Lease only while it drains: an idle driver sends no request for it.

mod expiry_tracker;
mod holder;
mod lease_reader;
mod leased_runner;
mod node_leases;
mod observer;

pub use expiry_tracker::ObservedLease;
pub use holder::HOLDER_ANNOTATION;
pub(super) use holder::HolderIdentity;
pub(super) use lease_reader::HolderLiveness;
pub use lease_reader::LeaseReader;
pub(super) use leased_runner::{CreatedDrain, DrainFactory, LeasedRunner};
pub(super) use node_leases::NodeLeases;
pub(super) use observer::LeaseObserver;
