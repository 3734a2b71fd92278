//! Drains that the driver on the node carries out: the command creates a LifecycleEvent and follows it to its end.

mod cancel;
mod create;
mod deadline_limit;
mod driver_findings;
mod error;
mod event_presence;
mod follower;
mod options;
mod queue_wait;
mod result;
mod status_diff;
mod unreported_end;

pub use cancel::{CancelEnd, Cancelled, cancel};
pub use create::{HandOverResults, run, with_drivers};
pub(super) use create::{offered, offered_for};
pub use error::HandOverError;
pub use options::{CancelOptions, HandOverOptions};
pub use result::HandOverEnd;
