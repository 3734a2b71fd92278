//! What time it is. The rest of the driver asks here, so that a test can turn the hands.

use std::time::{SystemTime, UNIX_EPOCH};

use scupper_engine::Time;
use tokio::time::Instant;

/// The clock of the driver. Sleeping is tokio's business, whose clock tests pause and advance; this one follows it.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// Starts at a moment and goes as tokio's goes.
    Test {
        /// The moment it started at.
        origin: Time,
        /// When that was by tokio's clock.
        started: Instant,
    },
}

impl Clock {
    /// A clock that shows `origin` now and goes as tokio's goes.
    pub fn starting_at(origin: Time) -> Self {
        Self::Test {
            origin,
            started: Instant::now(),
        }
    }

    /// The moment it is.
    pub fn now(&self) -> Time {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Time::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            }
            Self::Test { origin, started } => *origin + started.elapsed().into(),
        }
    }
}
