//! Drains that the driver on the node carries out: they are asked for by a LifecycleEvent and followed to their end.

mod ask;
mod bounds;
mod cancel;
mod end;
mod error;
mod flags;
mod follow;
mod news;
mod options;
mod permit;
mod sight;

pub use ask::{Handed, run};
pub(in crate::app) use cancel::is_asked;
pub use cancel::{Cancelled, cancel};
pub use end::End;
pub use error::HandOverError;
pub use flags::Typed;
pub(in crate::app) use flags::read as read_flags;
pub use options::{CancelOptions, HandOverOptions};
pub(in crate::app) use permit::permit;
