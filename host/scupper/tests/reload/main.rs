//! Hot reload with real files and real guests: a bad candidate changes nothing, a running drain keeps the revision that
//! it began with, and no call is dropped or mixed.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod candidates;
mod configurations;
mod control;
mod files;

#[expect(dead_code, reason = "other suites list the guests")]
#[path = "../support/guests.rs"]
mod guests;

mod idle;
mod last_good_revision;
#[path = "../support/limit.rs"]
mod limit;
mod load;
mod resuming;
mod rig;
mod rollback;

mod flapping;
mod sessions;
mod shadows;
