//! The import `facts`: what a policy may ask about the cluster.
//!
//! `source` says what the driver has to provide, `answers` remembers what was answered, `import` checks grants and converts.

pub(crate) mod answers;
mod device_annotations;
pub(crate) mod import;
mod owners;
mod resources;
pub(crate) mod source;
