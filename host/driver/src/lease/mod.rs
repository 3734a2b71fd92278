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
mod judge;
mod onlooker;
mod seat_watch;
mod seats;

pub(super) use guard::{Begin, Begun, Guard, called_off};
pub(super) use holder::Holder;
pub(super) use onlooker::Onlooker;
pub(super) use seat_watch::SeatWatch;
pub(super) use seats::Seats;
