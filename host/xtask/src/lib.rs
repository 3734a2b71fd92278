//! What the repository does to itself: building policies and checking the house rules.
//!
//! It is a library so that tests can make components too.

pub mod policies;
pub mod tidy;
pub mod workspace;

pub use scupper_builder::encode;
