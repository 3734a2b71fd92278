//! Which secrets a policy may use, and where it may send them.

use std::path::PathBuf;

/// A secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// The policy's name for it.
    pub name: String,
    /// Its source.
    pub source: SecretSource,
    /// The origins it may be sent to; each must also be granted.
    pub origins: Vec<String>,
}

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A file, reread when it changes. A final line break is ignored.
    File(PathBuf),
    /// A key of a Kubernetes Secret, reread when it changes.
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
        /// The origin of the responses.
        origin: String,
        /// The header's name.
        header: String,
    },
}
