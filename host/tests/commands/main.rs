//! `scupper plan`, `drain`, `uncordon` and `status` as people type them, on a simulated cluster.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]

mod draining;
mod flags;
mod rig;
mod status;
mod stopping;
mod uncordoning;
