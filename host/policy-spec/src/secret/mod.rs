//! Grants of secrets: which secrets a policy may use, and where it may send them.

mod grant;
mod rules;

pub use grant::{SecretGrant, SecretSource};
pub use rules::{Capture, SecretGrantError, SecretRule, SecretRules, ValueSource};
