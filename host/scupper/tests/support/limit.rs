//! How long a test waits for a condition.

use std::time::Duration;

/// Whatever must come comes within this, on a machine of a quarter of the usual speed that builds something else beside the
/// tests. Whoever waits looks for it often, so that it costs nothing where it comes at once; a bound that is shorter than this
/// must say what it tells apart.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);
