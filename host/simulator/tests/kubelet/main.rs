//! The kubelet simulator against the SLM contract, with a scripted driver.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests; a failure is a failed test"
)]

mod calls;
mod claims;
mod cluster;
mod driver;
mod endings;
mod events;
#[path = "../../../scupper/tests/support/limit.rs"]
mod limit;
mod registration;
mod transitions;
mod world;
