//! The import `facts`: what a policy may ask about the cluster.
//!
//! `import` checks grants and has one function for each of the import's; the modules of their names make the answers of
//! objects. `cache` reads each object once, `bulk` decides which ones with one request.

mod budgets;
mod bulk;
pub(crate) mod cache;
pub(crate) mod caller;
mod device_annotations;
pub(crate) mod import;
mod namespaces;
mod owners;
pub(crate) mod peers;
mod request;
mod resources;
mod volumes;
