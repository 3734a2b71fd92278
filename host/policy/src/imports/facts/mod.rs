//! The import `facts`: what a policy may ask about the cluster.
//!
//! `source` says what the driver has to provide, `answers` remembers what was answered, `import` checks grants and converts.

pub(crate) mod answers;
pub(crate) mod import;
mod owners;
pub(crate) mod source;
