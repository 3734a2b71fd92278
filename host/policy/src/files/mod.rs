//! Files that nobody else can change under us.

pub(crate) mod digest;
pub(crate) mod private_dir;
pub(crate) mod sealed;
