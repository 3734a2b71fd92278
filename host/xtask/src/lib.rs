//! The repository's own commands: building policies, writing the WIT's reference and checking the house rules.
//!
//! A library, so that tests can also build components.

pub mod policies;
pub mod reference;
pub mod tidy;
pub mod workspace;

pub use scupper_builder::encode;
