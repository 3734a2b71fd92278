//! Why something cannot be handed over or cancelled.

use scupper_cluster::{ReadError, WriteError};

/// Why something cannot be handed over or cancelled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandOverError {
    /// Whether there is a driver cannot be found out.
    #[error("cannot tell whether driver {driver} is running; --local drains from here without it")]
    Discover {
        /// The driver.
        driver: String,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// It is for a drain from here.
    #[error("{flag} cannot be passed to driver {driver}; omit it, or drain from here with --local")]
    OwnFlag {
        /// The driver.
        driver: String,
        /// The flag.
        flag: String,
    },
    /// The LifecycleEvent could not be created.
    #[error("could not create the LifecycleEvent; --local drains from here without the driver")]
    Ask(#[source] WriteError),
    /// The LifecycleEvent could not be read.
    #[error("could not follow LifecycleEvent {event}, which continues")]
    Follow {
        /// The LifecycleEvent.
        event: String,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// The LifecycleEvent that the command has created could not be deleted.
    #[error(
        "could not withdraw LifecycleEvent {event}, which a driver may still carry out; to withdraw it: scupper cancel {node}"
    )]
    Withdraw {
        /// The LifecycleEvent.
        event: String,
        /// Its node.
        node: String,
        /// Why not.
        #[source]
        source: WriteError,
    },
    /// What is to be cancelled could not be withdrawn.
    #[error("could not withdraw the LifecycleEvent")]
    TakeBack(#[source] WriteError),
}
