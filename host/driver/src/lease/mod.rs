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

pub(super) use guard::{Begin, Begun, Guard, called_off};
pub(super) use holder::Holder;
pub(super) use lease_reader::SeatWatch;
pub(super) use node_leases::Seats;
pub(super) use observer::Onlooker;
