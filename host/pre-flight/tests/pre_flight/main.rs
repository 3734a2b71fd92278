//! Pre-flight arithmetic: each finding by example, and that a certain one is never wrong.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod examples;
mod generator;
mod local_data;
mod model;
mod objects;
mod soundness;
mod surge;
