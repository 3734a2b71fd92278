//! When a drain will probably end, in the published status.

use scupper_engine::{HumanDuration, Time};
use serde_json::{Value, json};

use scupper_common::clock::rfc3339;

/// When a drain will probably end: of ten drains like this one, one ends before the first of these, five before the second,
/// and nine before the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate(pub [Time; 3]);

impl Estimate {
    /// `probably in 12m00s (8m00s to 31m00s)`. `None`: it was wrong.
    pub fn text(&self, now: Time) -> Option<String> {
        let left = |at: Time| (at > now).then(|| HumanDuration(at.since(now)));
        match self.0.map(left) {
            [Some(early), Some(likely), Some(late)] => {
                Some(format!("probably in {likely} ({early} to {late})"))
            }
            [None, Some(likely), Some(late)] => Some(format!("probably in {likely} (up to {late})")),
            [_, None, Some(late)] => Some(format!("probably within {late}")),
            _ => None,
        }
    }

    pub(crate) fn to_json(self) -> Value {
        let [early, likely, late] = self.0.map(rfc3339);
        json!({ "early": early, "likely": likely, "late": late })
    }
}
