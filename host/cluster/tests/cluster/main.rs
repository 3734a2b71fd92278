//! The cluster edge against a scripted API server: the test expects each request in its place, with its path, query
//! and body, and answers it. A missing request fails after a moment, a surplus one at the end.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod claims;
mod connecting;
mod daemons;
mod events;
mod large_objects;
mod lifecycle;
#[path = "../../../scupper/tests/support/limit.rs"]
mod limit;
mod local_volumes;
mod out_of_service;
mod replicas;
mod room;
mod script;
mod tasks;
mod volumes;
mod watching;
