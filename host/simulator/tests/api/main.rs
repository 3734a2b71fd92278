//! The API server simulator: with the driver's client library, its handle, and the rows that the real API server also passes.

mod handle;
mod kube_client;
mod rows;
#[path = "../semantics/mod.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a row that cannot go on says where"
)]
mod semantics;
