//! The time limit for a test's wait.

use std::time::Duration;

/// The limit for every condition, on a machine with an eighth of the usual speed that runs another build beside the
/// tests. Waits poll often, so that a generous limit costs nothing; a shorter limit must state what it distinguishes.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);
