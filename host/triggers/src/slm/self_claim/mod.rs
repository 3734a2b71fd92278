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
mod decide;
mod machine;
mod who;
mod worker;

pub use api::{Change, ClaimApi, ClaimError, Claimable, Condition, Sight};
pub(super) use decide::Action;
pub(super) use machine::{Done, Machine};
pub use who::Claimant;
pub(super) use worker::{Heard, Worker};
