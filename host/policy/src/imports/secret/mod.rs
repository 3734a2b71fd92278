//! Secrets that policies use without seeing them.
//!
//! A policy holds names. The host reads the values when they are used, puts them in on the way to an origin they were
//! granted for, and takes them out of whatever comes back. It must not know what a secret is for.

mod captured;
mod inject;
mod read;
mod redact;
mod secret_string;

pub use captured::Secrets;

pub(crate) use inject::inject;
pub(crate) use read::Reader;
pub(crate) use redact::Redaction;
pub(crate) use secret_string::SecretString;
