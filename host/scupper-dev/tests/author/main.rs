//! A policy author's path, with the real program and no cluster.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "helpers of tests fail by panicking, as tests do, and each binary uses its part of what they share"
)]

mod chain;
mod comparing;
#[path = "../../../scupper/tests/support/guests.rs"]
mod guests;
mod languages;
#[path = "../../../scupper/tests/support/limit.rs"]
mod limit;
mod looking;
mod new;
mod program;
#[path = "../../../scupper/tests/support/programs.rs"]
mod programs;
mod replaying;
mod saved_plans;
mod scenarios;
#[path = "../../../scupper/tests/support/schema.rs"]
mod schema;
#[path = "../../../scupper/tests/support/skip.rs"]
mod skip;
mod stories;
mod tutorial;
