//! Files that no other process can change during use.

pub(crate) mod digest;
pub(crate) mod private_dir;
pub(crate) mod sealed;
