//! The flags of a drain that a command hands over to the driver.

mod allowed_overrides;
mod flags;

pub(crate) use allowed_overrides::permit;
pub(crate) use flags::read as read_flags;
pub use flags::{HandoverFlags, write as write_flags};
