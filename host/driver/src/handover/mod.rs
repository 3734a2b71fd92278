//! What commands write for the driver, and how it reads it: the flags of a drain that is handed over, and its cancel.

mod allowed_overrides;
mod cancel;
mod flags;

pub(crate) use allowed_overrides::permit;
pub use cancel::CANCEL_ANNOTATION;
pub(crate) use cancel::is_cancelled;
pub(crate) use flags::read as read_flags;
pub use flags::{CommandFlags, write as write_flags};
