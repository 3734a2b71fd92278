//! Why the door cannot work.

use std::io;
use std::path::PathBuf;

use super::OptionsError;

/// Why the door had to close.
#[derive(Debug, thiserror::Error)]
pub enum SlmError {
    /// An option is wrong.
    #[error("invalid options of the SLM driver")]
    Options(#[from] OptionsError),
    /// The kubelet's directory is not there.
    #[error("{path} is not there: is a kubelet running, and is its root directory given as --kubelet-root?")]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// We may not write there.
    #[error("cannot write in {path}: the driver needs it mounted writable, and runs as root")]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// A socket could not be made.
    #[error("cannot listen on {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: io::Error,
    },
    /// The rest of the driver has gone away.
    #[error("the {what} ended while the driver runs")]
    Wire {
        /// Which connection.
        what: &'static str,
    },
}
