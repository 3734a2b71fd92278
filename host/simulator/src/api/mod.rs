//! A Kubernetes API server in memory, over real HTTP.
//!
//! It responds like a real one in everything that the driver uses: evictions and budgets, watches and their ends, patches,
//! conflicts. It does not know the driver.

mod access;
mod clock;
mod cluster;
mod delete;
mod discovery;
mod eviction;
mod failure;
mod faults;
mod fields;
mod handle;
mod kinds;
mod list;
pub mod objects;
mod patch;
mod requests;
mod selector;
mod serve;
mod server;
mod shape;
mod store;
mod table;
mod target;
mod validation;
mod watch;
mod write;

pub use access::Forbidden;
pub use faults::{Action, Fault};
pub use kinds::{Kind, Lifecycle};
pub use requests::RequestRecord;
pub use server::{ApiServer, Options, StartError};
pub use store::{Store, StoreError};
