//! A host in memory, so that policies have ordinary tests: no wasm, no cluster, no clock.
//!
//! ```
//! # use scupper_sdk::{*, testing::{Host, pod}};
//! # struct Greeter;
//! # impl Policy for Greeter { fn describe() -> Description { description!("Marks the node").wants(Grant::node_annotations("example.com/")) } }
//! impl Hooks for Greeter {
//!     fn phases() -> Vec<Phase> {
//!         vec![Phase::BeforeCordon]
//!     }
//!
//!     fn step(call: &Call) -> Outcome {
//!         match cluster::annotate_node("example.com/drained-by", &call.drain.name) {
//!             Ok(()) => Outcome::Done,
//!             Err(error) => error.into(),
//!         }
//!     }
//! }
//!
//! let host = Host::new();
//! assert_eq!(host.step::<Greeter>(Phase::BeforeCordon, Subject::Node), Outcome::Done);
//! assert_eq!(host.node_annotation("example.com/drained-by").as_deref(), Some("maintenance"));
//! ```
//!
//! Each test thread has one host. [`Host::new`] resets it.

mod facts;
mod hook_run;
mod host;
pub(crate) mod imports;
mod planned;
mod pods;
mod state;

pub use facts::{budget, drain_request, job, namespace, owner, peer, resources, volume};
pub use hook_run::HookRun;
pub use host::{Host, sign};
pub use planned::Planned;
pub use pods::pod;
