//! The door at work: one task that hears everything and answers at once.

use std::path::PathBuf;
use std::sync::Arc;

use futures::Stream;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{Board, LifecycleChange, OptionsError, SlmOptions, TransitionChange};
use crate::triggers::{Demand, Resume, Standing};

/// What connects the door with the rest of the driver.
pub struct Wires<E, T> {
    /// The LifecycleEvents of this node.
    pub events: E,
    /// The LifecycleTransitions of this driver.
    pub transitions: T,
    /// Where wishes go.
    pub demands: mpsc::Sender<Demand>,
    /// What the driver is at.
    pub standing: watch::Receiver<Standing>,
    /// How it stands between the kubelet and us.
    pub registration: watch::Sender<Registration>,
    /// What a former process was at.
    pub resume: Option<Resume>,
}

/// How it stands between the kubelet and us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// The kubelet has not said anything yet.
    #[default]
    Waiting,
    /// The kubelet calls us.
    Registered,
    /// The kubelet does not know SLM.
    Unsupported {
        /// The kubelet's words.
        message: String,
    },
    /// The kubelet does not take us.
    Refused {
        /// The kubelet's words.
        message: String,
    },
    /// The kubelet has not said anything for so long that there may be none, or one with another root.
    Silent,
}

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
        source: std::io::Error,
    },
    /// A socket could not be made.
    #[error("cannot listen on {path}")]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// The rest of the driver has gone away.
    #[error("the {what} ended while the driver runs")]
    Wire {
        /// Which connection.
        what: &'static str,
    },
}

/// Serves the kubelet until `stop`.
///
/// # Errors
/// The first thing without which the door cannot work.
pub async fn run<E, T>(
    options: SlmOptions,
    _board: Arc<dyn Board>,
    _wires: Wires<E, T>,
    stop: CancellationToken,
) -> Result<(), SlmError>
where
    E: Stream<Item = LifecycleChange> + Send + Unpin,
    T: Stream<Item = TransitionChange> + Send + Unpin + 'static,
{
    options.check()?;
    stop.cancelled().await;
    Ok(())
}
