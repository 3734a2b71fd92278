//! The API server simulator: what the driver's library does with it, its handle, and the rows that the real API server
//! answers, too.

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
