//! The import `facts`: what a policy may ask about the cluster.
//!
//! `source` says what the driver has to provide, `answers` remembers what was answered, `import` checks grants, `records`
//! converts.

pub(crate) mod answers;
mod bulk;
mod device_annotations;
pub(crate) mod import;
mod owners;
pub(crate) mod peers;
mod pod_specs;
mod records;
mod resources;
pub(crate) mod source;
mod volumes;
