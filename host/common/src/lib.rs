//! Shared by all parts of the host: the clock, escaping of foreign text for display, notations of Kubernetes, the limit of
//! concurrent evictions, the set of long-lived tasks, their heartbeats, and the throttle of repeated Events. It knows
//! nothing of how drains run.
#![deny(missing_docs)]

pub mod clock;
pub mod error;
pub mod event_throttle;
pub mod go_duration;
pub mod health;
pub mod in_flight;
pub mod label_selector;
pub mod markup;
pub mod packed_uids;
pub mod quantity;
#[cfg(feature = "samples")]
pub mod samples;
pub mod tasks;
pub mod text;
