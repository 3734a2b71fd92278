//! Why something cannot be handed over or cancelled.

use crate::cluster::{ReadError, WriteError};

/// Why something cannot be handed over or cancelled.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// Whether there is a driver cannot be found out.
    #[error("cannot tell whether the driver {driver} is there; --local does it from here without it")]
    Discover {
        /// The driver.
        driver: String,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// It is for a drain from here.
    #[error(
        "{flag} cannot be handed over to the driver {driver}; leave it out, or do it from here with --local"
    )]
    OwnFlag {
        /// The driver.
        driver: String,
        /// The flag.
        flag: &'static str,
    },
    /// The flags could not be written down.
    #[error("could not write the flags down")]
    Flags(#[source] serde_json::Error),
    /// The wish could not be written.
    #[error("could not hand it over; --local does it from here without the driver")]
    Ask(#[source] WriteError),
    /// What became of the wish cannot be seen.
    #[error("could not follow lifecycleevent {event}, which goes on")]
    Follow {
        /// The LifecycleEvent.
        event: String,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// The wish could not be taken back.
    #[error("could not take it back")]
    TakeBack(#[source] WriteError),
}
