//! The policy edge: loads wasm components of the package `scupper:drain` and calls them.
//!
//! A policy is somebody else's code. It runs without system interfaces, with bounded memory, time and output, in a
//! store of its own for every call, and whatever it does becomes an answer: no panic and no trap leaves this module.
//! Native code is made from wasm by a child process with limits of its own; the driver only loads what that child made.
//!
//! ```text
//!  file ─► source ─► cache ──hit──► native ─► linked ─► probe (describe, check-config, phases) ─► Policy
//!                      └─miss─► compiler (child process) ─┘
//!  plan, step ─► store (limits) ─► guest ─► convert (caps) ─► answer
//! ```
//!
//! It must not know where drains come from, how the API server is spoken to, or what a plan means.

mod access;
mod call;
mod child;
mod config;
mod limits;
mod policies;
mod runtime;
mod spec;

pub use access::{AccessError, ClusterAccess};
pub use call::{DrainInfo, PlanCall, StepCall};
pub use child::compile_child;
pub use limits::Limits;
pub use policies::{Description, LoadError, Policies};
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
pub use spec::{Capability, Grant, GrantError, PolicySpec};
