//! Never two at one node: whoever drains it holds the node's Lease meanwhile, and whoever else wants to stands by.
//!
//! ```text
//!  guard ─► seats (takes, renews, gives back) ─► judge (whose is it, by our own observation) ─► holder (who, and dead?)
//!    └───► drive, as long as the lease is ours
//! ```
//!
//! The lease is only held while there is something to do: a driver at rest asks nothing of the API server for it.

mod guard;
mod holder;
mod lease_reader;
mod node_leases;
mod observer;
mod state;

pub(super) use guard::{CreatedDrain, DrainFactory, LeaseGuard, called_off};
pub(super) use holder::HolderIdentity;
pub use lease_reader::LeaseReader;
pub(super) use node_leases::NodeLeases;
pub(super) use observer::LeaseObserver;
