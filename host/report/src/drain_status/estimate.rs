//! When a drain will probably end, in the published status and in what is written about the node.

use std::time::Duration;

use scupper_engine::{HumanDuration, Request, Time};
use serde_json::{Value, json};

use crate::conditions::NodeEvent;
use crate::messages::one_line;
use scupper_common::clock::{rfc3339, rfc3339_in_seconds};

/// What ends sooner is over before somebody has read about it.
const SOON: Duration = Duration::from_secs(10);

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

    /// What is likely by another one is within the range of this one.
    pub fn covers(&self, other: &Self) -> bool {
        let ([early, _, late], [_, likely, _]) = (self.0, other.0);
        early <= likely && likely <= late
    }

    /// `in about 12m00s`, where there is little room.
    pub(crate) fn short_text(&self, now: Time) -> Option<String> {
        let [_, likely, _] = self.0;
        (likely > now).then(|| format!("in about {}", HumanDuration(likely.since(now))))
    }

    /// `at 2026-11-27T07:12:03Z (2026-11-27T07:11:40Z to 2026-11-27T07:14:00Z)`, for a text that stays as it is while time passes. `None`: so soon
    /// that nobody needs to read it.
    pub(crate) fn at_text(&self, now: Time) -> Option<String> {
        let [early, likely, late] = self.0;
        let is_worth_it = likely > now && likely.since(now) >= SOON;
        is_worth_it.then(|| {
            let [early, likely, late] = [early, likely, late].map(rfc3339_in_seconds);
            format!("at {likely} ({early} to {late})")
        })
    }

    /// When nine of ten drains like it have ended.
    pub(crate) const fn last(&self) -> Time {
        let [_, _, last] = self.0;
        last
    }

    /// The Event at the start of a drain that takes some time.
    pub fn event(&self, now: Time, request: &Request) -> Option<NodeEvent> {
        self.at_text(now).map(|at| NodeEvent {
            warning: false,
            reason: "DrainEstimated".to_owned(),
            note: one_line(&format!("{} will probably end {at}", request.name)),
        })
    }

    pub(crate) fn to_json(self) -> Value {
        let [early, likely, late] = self.0.map(rfc3339);
        json!({ "early": early, "likely": likely, "late": late })
    }
}
