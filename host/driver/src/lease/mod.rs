//! Only one process drains a node at a time: it holds the node's Lease, and every other process waits.
//!
//! ```text
//!  guard ─► node_leases (takes, renews, releases) ─► state (expired, by our own observation?) ─► holder (who, and dead?)
//!    └───► runner, as long as the Lease is ours
//! ```
//!
//! A driver holds the Lease only while it drains: an idle driver sends no request for it.

mod guard;
mod holder;
mod lease_reader;
mod node_leases;
mod observer;
mod state;

pub(super) use guard::{CreatedDrain, DrainFactory, LeaseGuard};
pub(super) use holder::HolderIdentity;
pub use lease_reader::LeaseReader;
pub(super) use node_leases::NodeLeases;
pub(super) use observer::LeaseObserver;
