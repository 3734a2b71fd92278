//! Metrics of DrainRequests: how they were answered.

use crate::labels;
use crate::registry::Metrics;

/// The reasons of `DrainComplete` and `DrainFailed`.
const REASONS: [&str; 9] = [
    "Drained",
    "NoPods",
    "InvalidRequest",
    "Blocked",
    "PolicyFailed",
    "DeadlineExceeded",
    "Cancelled",
    "Lost",
    "Failed",
];

impl Metrics {
    /// Exports every reason with a count of 0, so that the first answer of each kind shows as an increase.
    pub fn serves_drain_requests(&self) {
        for reason in REASONS {
            self.drain_requests
                .get_or_create(&labels::Reason { reason })
                .inc_by(0);
        }
    }

    /// Counts an answer by the reason of its condition.
    pub fn drain_request_answered(&self, reason: &str) {
        if let Some(reason) = REASONS.into_iter().find(|known| *known == reason) {
            self.drain_requests
                .get_or_create(&labels::Reason { reason })
                .inc();
        }
    }
}
