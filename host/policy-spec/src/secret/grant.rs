//! Which secrets a policy may use, and where it may send them.

use std::path::PathBuf;

/// A secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// What the policy calls it.
    pub name: String,
    /// Where it comes from.
    pub source: SecretSource,
    /// The origins it may be sent to; each must also be granted.
    pub origins: Vec<String>,
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A file, read again when it has changed. One line break at its end is no part of the secret.
    File(PathBuf),
    /// A key of a Kubernetes Secret, read again when it has changed.
    Kubernetes {
        /// `metadata.namespace`
        namespace: String,
        /// `metadata.name`
        name: String,
        /// The key in `data`.
        key: String,
    },
    /// A header of a response, captured on its way to the policy.
    Captured {
        /// Whose responses.
        origin: String,
        /// The header's name.
        header: String,
    },
}
