//! Builds the crate of a policy into a component: cargo compiles a core module, which is wrapped and written to a file.
//!
//! For `scupper policy build` and `cargo xtask policies`. It does not know what a policy does or how it runs.
#![deny(missing_docs)]

mod compile;
mod component;
mod error;
#[cfg(test)]
mod error_texts;
mod workspace;

pub use compile::{PROFILE, TARGET, compile};
pub use component::{Built, component, encode, interfaces};
pub use error::BuildError;
pub use workspace::{Package, Workspace};
