//! Scupper: drains Kubernetes nodes as its users' policies say.
//!
//! `cli` reads the command line, `app` composes, and four edges that never name each other do the rest: `triggers`
//! hears wishes, `cluster` reads and writes the API server, `policy` runs wasm components, `report` tells people.
//! What happens to the pods is decided by the engine alone.
#![deny(missing_docs)]

pub mod app;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod policy;
pub mod report;
mod text;
pub mod triggers;
