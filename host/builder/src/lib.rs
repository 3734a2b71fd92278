//! From the crate of a policy to a component: cargo makes a core module of it, which is wrapped and written in one.
//!
//! `scupper policy build` and the repository's own `cargo xtask policies` are both this. It must not know what a policy
//! does, nor how it is run.
#![deny(missing_docs)]

mod compile;
mod component;
mod error;
mod workspace;

pub use compile::{PROFILE, TARGET, compile};
pub use component::{Built, component, encode, interfaces};
pub use error::BuildError;
pub use workspace::{Package, Workspace};
