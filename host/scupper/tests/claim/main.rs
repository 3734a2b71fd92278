//! Self-claim: the driver on a node whose kubelet does not know SLM, against the same contract. The real binary, a
//! kubelet simulator that refuses its plugin, and an API server simulator over real HTTP.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    dead_code,
    reason = "helpers of tests, shared with those of the SLM scenarios; a failure is a failed test"
)]

mod conditions;
mod cordon;
mod crashes;
mod crossings;
mod drain_request_facts;
mod drain_request_orders;
mod drain_request_sizes;
mod drain_requests;
#[path = "../slm/driver.rs"]
mod driver;
mod endings;
mod flow;
#[path = "../support/gate.rs"]
mod gate;
mod groups;
#[path = "../support/guests.rs"]
mod guests;
mod handover;
#[path = "../support/limit.rs"]
mod limit;
mod node;
#[path = "../slm/objects.rs"]
mod objects;
mod odd_events;
#[path = "../support/pairs.rs"]
mod pairs;
mod planned_requests;
#[path = "../support/program.rs"]
mod program;
mod racing;
#[path = "../slm/rig.rs"]
mod rig;
mod rolling;
#[path = "../slm/scrape.rs"]
mod scrape;
mod takeover;
mod waiting_requests;
