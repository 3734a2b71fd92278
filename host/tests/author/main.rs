//! The path of a policy's author, as the author walks it: the program itself, no cluster.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[path = "../support/guests.rs"]
mod guests;
mod looking;
mod new;
mod program;
mod scenarios;
