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
pub(crate) use cancel::is_asked;
pub use cancel::{Cancelled, cancel};
pub use end::End;
pub use error::HandOverError;
pub use flags::Typed;
pub(crate) use flags::read as read_flags;
pub use options::{CancelOptions, HandOverOptions};
pub(crate) use permit::permit;
