//! The path of a policy's author, as the author walks it: the program itself, no cluster.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod new;
mod program;
mod scenarios;
