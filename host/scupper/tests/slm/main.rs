//! The driver against the SLM contract: the real binary, a kubelet simulator over real Unix sockets, an API server
//! simulator over real HTTP.
//!
//! Scenarios carry the numbers of the contract's list. Everything is about fifty times as fast as on a node: a pass
//! each 200 ms instead of each 10 s. Scenarios 18 and 19 are about the API server and belong to its simulator's tests.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "helpers of tests; a failure is a failed test"
)]

mod blocked_output;
mod calls;
mod claims;
#[path = "../support/collector.rs"]
mod collector;
#[path = "../support/component.rs"]
mod component;
mod crashes;
mod driver;
mod endings;
mod examples;
#[path = "../support/guests.rs"]
#[expect(dead_code, reason = "not all of it is needed here")]
mod guests;
mod idle;
mod lasting_record;
#[path = "../support/limit.rs"]
mod limit;
mod memory;
mod metrics;
mod namespaces;
mod objects;
mod policies;
mod probes;
#[path = "../support/program.rs"]
mod program;
mod refusals;
mod reloading;
mod resuming;
mod rig;
mod rolling;
mod scrape;
mod starting;
mod tasks;
mod traces;
mod transitions;
