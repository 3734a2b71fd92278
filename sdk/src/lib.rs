//! Write drain policies for Scupper.
//!
//! A policy is a crate that is built into a WebAssembly component. It implements [`Policy`] and one or both of [`Planner`]
//! (which pods leave, and in which order) and [`Hooks`] (what must happen around a drain), and lists them in [`export!`].
//! With [`Surroundings`] it also checks what it depends on before the first drain.
//!
//! ```
//! use scupper_sdk::{Description, Draft, Drain, Node, Planner, Policy, description};
//!
//! /// Keeps pods that their owners marked.
//! struct KeepMarked;
//!
//! impl Policy for KeepMarked {
//!     fn describe() -> Description {
//!         description!("Keeps pods with the label example.com/keep=true")
//!     }
//! }
//!
//! impl Planner for KeepMarked {
//!     fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
//!         for pod in draft.pods() {
//!             if pod.label("example.com/keep") == Some("true") {
//!                 draft.keep(pod, "its owner marked it");
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! scupper_sdk::export!(KeepMarked with planner);
//!
//! // A policy is tested like any other crate, with a host in memory.
//! use scupper_sdk::{Verdict, testing::{Host, pod}};
//!
//! let host = Host::new();
//! host.pods([pod("shop/cart"), pod("shop/db").with_label("example.com/keep", "true")]);
//! let plan = host.plan::<KeepMarked>().unwrap();
//! assert_eq!(plan.verdict("shop/cart"), Some(Verdict::Evict));
//! assert_eq!(plan.verdict("shop/db"), Some(Verdict::Keep));
//! ```
#![deny(missing_docs)]

#[doc(hidden)]
pub mod bindings;
pub mod cluster;
pub mod config;
pub mod credential;
mod draft;
pub mod events;
mod export;
pub mod facts;
pub mod handshake;
mod held;
pub mod hold;
pub mod http;
mod invisible;
#[cfg(feature = "json")]
pub mod json;
mod label;
pub mod log;
pub mod mark;
mod objects;
mod on_failure;
mod outcome;
mod plural;
mod policy;
mod protection;
pub mod retry;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod time;

/// The imports: the host's, or in native builds those of `testing::Host`.
#[cfg(target_family = "wasm")]
use bindings::imports::scupper::drain as host;
#[cfg(not(target_family = "wasm"))]
use testing::imports as host;

pub use bindings::about::exports::scupper::drain::about::{Description, Grant, Problem};
pub use bindings::hooks::exports::scupper::drain::hooks::{
    Call, Failure, Outcome, Pending, Phase, Subject, WaitingOn,
};
pub use bindings::imports::scupper::drain::types::{
    Condition, Controller, Decision, Drain, Entry, Node, Plan, Pod, PodPhase, Timestamp, Uid, Verdict, Wave,
};
pub use bindings::surroundings::exports::scupper::drain::surroundings::{Finding, Severity};
pub use draft::{Draft, WaveLimits};
#[doc(hidden)]
pub use export::glue;
pub use hold::Hold;
pub use label::LabelPattern;
pub use on_failure::OnFailure;
pub use plural::count;
pub use policy::{Hooks, Planner, Policy, Surroundings};

/// Compiles and runs the code in the README as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
