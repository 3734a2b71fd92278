//! Empties a host, and undoes the changes. Every step starts from Nova's state and not from what the previous step saw, so
//! restarts, leftovers of another driver and manual changes need no special handling.

mod apply;
mod arriving;
mod cancel;
mod confirm_empty;
mod decide;
mod enable;
mod node_events;
mod observe;
mod operator;
mod pace;
mod preflight;
mod progress;
mod reasons;
mod step;
mod surroundings;

pub(crate) use cancel::cancel;
pub(crate) use enable::enable;
pub(crate) use preflight::preflight;
pub(crate) use step::empty;
pub(crate) use surroundings::surroundings;
