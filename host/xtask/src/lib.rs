//! The repository's own commands: building policies and checking the house rules.
//!
//! A library, so that tests can also build components.

pub mod policies;
pub mod tidy;
pub mod workspace;

pub use scupper_builder::encode;
