//! Self-claim: where the kubelet does not know SLM, the driver does the kubelet's part for its own node.
//!
//! ```text
//!  LifecycleEvents, driver's standing ─► worker ─► machine ─► decide ─► Action ─► ClaimApi   (looks and writes)
//!                                                                             └─► door       (Start and End)
//! ```
//!
//! `who` tells whether it is our turn at all, `decide` what is to be done with one event that was just looked at,
//! `machine` which event that is and when; `worker` does it. Start and End go to the same door that a kubelet calls,
//! so that they mean the same. The module must not know how the API server is reached, nor how a drain goes.

mod api;
mod claimant;
mod machine;
mod rules;
mod task;

pub use api::{ClaimApi, ClaimError, EventSnapshot, EventUpdate, TransitionCondition, VersionedEvent};
pub use claimant::Claimant;
pub(super) use machine::{ActionResult, ClaimMachine};
pub(super) use rules::ClaimAction;
pub(super) use task::{ClaimInput, ClaimTask};
