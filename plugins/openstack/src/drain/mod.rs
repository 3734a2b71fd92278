//! Emptying a host, and putting back what that changed. Every step begins with what Nova says and not with what the
//! step before thought, so that a restart, a second driver's leftovers and a person's hand are no special cases.

mod apply;
mod arriving;
mod cancel;
mod confirm_empty;
mod decide;
mod enable;
mod node_events;
mod observe;
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
