//! Secrets that policies use without seeing them.
//!
//! A policy only has their names. The host reads the values on use, inserts them into requests to the origins they were
//! granted for, and removes them from all responses. It must not know the purpose of a secret.

mod captured;
#[cfg(test)]
mod error_texts;
mod inject;
mod read;
mod redact;
mod secret_string;

pub use captured::Secrets;

pub(crate) use inject::inject;
pub(crate) use read::Reader;
pub(crate) use redact::Redaction;
pub(crate) use secret_string::SecretString;
