//! Self-claim: where the kubelet does not know SLM, the driver does the kubelet's part for its own node.
//!
//! ```text
//!  LifecycleEvents, driver's state ─► task ─► machine ─► rules ─► ClaimAction ─► ClaimApi       (reads and writes)
//!                                                                             └─► SLM trigger    (Start and End)
//! ```
//!
//! `claimant` decides whether this driver claims at all, `rules` the next action on an event that was just read,
//! `machine` which event and when; `task` carries it out. Start and End go to the same handler as a kubelet's calls, so
//! that they mean the same. The module must not know how to reach the API server, nor how a drain works.

mod api;
mod claimant;
mod machine;
mod rules;
mod task;

pub use api::{ClaimApi, ClaimError, EventSnapshot, EventUpdate, TransitionCondition, has_finalizer};
pub use claimant::Claimant;
pub(super) use machine::{ActionResult, ClaimMachine};
pub(super) use rules::ClaimAction;
pub(super) use task::{ClaimInput, ClaimTask};
