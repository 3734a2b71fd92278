//! Files that no other process can change while we use them.

pub(crate) mod digest;
pub(crate) mod private_dir;
pub(crate) mod sealed;
