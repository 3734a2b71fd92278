//! When a drain will probably end, in the published status.

use scupper_engine::{HumanDuration, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use scupper_common::clock::rfc3339;

/// When a drain will probably end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// One of ten drains like this one ends before.
    pub early: Time,
    /// One of two does.
    pub likely: Time,
    /// Nine of ten do.
    pub late: Time,
}

/// As in the annotation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireEstimate(u64, u64, u64);

impl Estimate {
    /// `probably in 12m00s (8m00s to 31m00s)`. `None`: it was wrong.
    pub fn text(&self, now: Time) -> Option<String> {
        let left = |at: Time| (at > now).then(|| HumanDuration(at.since(now)));
        let late = left(self.late)?;
        Some(match (left(self.early), left(self.likely)) {
            (Some(early), Some(likely)) => format!("probably in {likely} ({early} to {late})"),
            (None, Some(likely)) => format!("probably in {likely} (up to {late})"),
            (_, None) => format!("probably within {late}"),
        })
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "early": rfc3339(self.early), "likely": rfc3339(self.likely), "late": rfc3339(self.late),
        })
    }

    pub(super) const fn to_wire(self) -> WireEstimate {
        WireEstimate(
            self.early.as_millis(),
            self.likely.as_millis(),
            self.late.as_millis(),
        )
    }

    pub(super) const fn from_wire(wire: &WireEstimate) -> Self {
        Self {
            early: Time::from_millis(wire.0),
            likely: Time::from_millis(wire.1),
            late: Time::from_millis(wire.2),
        }
    }
}
