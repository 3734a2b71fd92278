//! The errors that stop the SLM trigger.

use std::io;
use std::path::PathBuf;

use super::OptionsError;

/// An error that stops the SLM trigger.
#[derive(Debug, thiserror::Error)]
pub enum SlmError {
    /// An option is invalid.
    #[error("invalid options of the SLM driver")]
    Options(#[from] OptionsError),
    /// The kubelet's directory does not exist.
    #[error(
        "the directory {path} does not exist: check that a kubelet runs here and that --kubelet-root is its root directory"
    )]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is not writable.
    #[error("cannot write to {path}: mount it writable and run the driver as root")]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A socket could not be created.
    #[error("cannot listen on {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A channel to the rest of the driver has closed.
    #[error("the {what} ended while the driver runs")]
    Wire {
        /// The channel.
        what: &'static str,
    },
}
