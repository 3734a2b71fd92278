//! Secrets that policies use without seeing them.

mod grant;

pub use grant::{SecretGrant, SecretSource};
