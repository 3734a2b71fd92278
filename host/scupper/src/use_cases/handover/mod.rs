//! Drains that the driver on the node carries out: the command creates a LifecycleEvent and follows it to its end.

mod cancel;
mod create;
mod deadline_limit;
mod error;
mod event_presence;
mod follower;
mod options;
mod queue_wait;
mod result;
mod status_diff;

pub(crate) use cancel::{CancelEnd, Cancelled, cancel};
pub(crate) use create::{HandOverResults, run};
pub(super) use create::{offered, offered_for};
pub(crate) use error::HandOverError;
pub(crate) use options::{CancelOptions, HandOverOptions};
pub(crate) use result::HandOverEnd;
