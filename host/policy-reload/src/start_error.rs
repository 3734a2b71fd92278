//! Why a driver cannot start with its policies.

use std::path::PathBuf;

use scupper_policy::LoadError;
use thiserror::Error;

use super::store::StoreError;

/// Why there are no initial policies.
#[derive(Debug, Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// The configuration or a policy's file changes all the time.
    #[error(
        "{} changed during each of {scans} scans; write a new file beside it and rename that one, then start the driver \
         again",
        file.display()
    )]
    Moving {
        /// One of those that change.
        file: PathBuf,
        /// How often it was read.
        scans: u32,
    },
    /// A policy was rolled back, and the revision to which it was is lost.
    #[error(
        "the configured revision of policy `{0}` was rolled back, and the revision before it is no longer in the state \
         directory; configure another revision, or delete last-good.json there to try this one again"
    )]
    RolledBack(String),
    /// A policy cannot be used, and no good revision of it exists.
    #[error(transparent)]
    Policy(#[from] LoadError),
    /// The last good revisions cannot be stored.
    #[error(transparent)]
    Store(StoreError),
}
