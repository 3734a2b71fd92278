//! Determines from the node's Lease whether a process carries out a drain that has not ended.

use std::time::Duration;

use scupper_engine::{HumanDuration, Time};
use serde_json::{Value, json};

use crate::messages::one_line;
use scupper_common::clock::rfc3339;

/// The holder of a node's Lease, as seen from this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaseHolder {
    /// The Lease could not be read, or there is no drain that needs one.
    #[default]
    Unknown,
    /// No Lease exists. A drain may run without one if it cannot create one.
    Free,
    /// A process holds the Lease.
    Held {
        /// The holder, for people.
        by: String,
        /// The last renewal, if the Lease has expired: the holder may be gone. `None`: it has not, or that is not known.
        silent_since: Option<Time>,
    },
    /// The holder is gone.
    Abandoned {
        /// The holder, for people.
        by: String,
        /// The last renewal; `None`: the process is known to have ended.
        silent_since: Option<Time>,
    },
}

impl LeaseHolder {
    /// Evaluates a Lease that `by` holds for `length` after each renewal.
    pub fn of(by: String, renewed: Option<Time>, length: Duration, is_dead: bool, now: Time) -> Self {
        // The times in a Lease come from another machine's clock: twice the length tolerates clock skew. A command that has
        // watched the Lease for its length is certain sooner, so from then on it is said that the holder may be gone.
        let allowed = Duration::from_secs(length.as_secs().saturating_mul(2));
        let silent_since = renewed.filter(|since| now.since(*since) > length);
        match renewed {
            _ if is_dead => Self::Abandoned {
                by,
                silent_since: None,
            },
            Some(since) if now.since(since) > allowed => Self::Abandoned {
                by,
                silent_since: Some(since),
            },
            _ => Self::Held { by, silent_since },
        }
    }

    /// It is gone, and its name does not matter.
    pub const fn gone() -> Self {
        Self::Abandoned {
            by: String::new(),
            silent_since: None,
        }
    }

    pub(crate) const fn is_abandoned(&self) -> bool {
        matches!(self, Self::Abandoned { .. })
    }

    /// The text about a holder that is gone, or may be.
    pub fn text(&self, now: Time) -> Option<String> {
        match self {
            Self::Unknown => None,
            Self::Held { by, silent_since } => silent_since.map(|since| {
                let silent = HumanDuration(now.since(since));
                format!(
                    "{} has not renewed the node's Lease for {silent}, so it may be gone (ask again in 30s)",
                    one_line(by)
                )
            }),
            Self::Free => Some("no process holds the node's Lease, so it may be abandoned".to_owned()),
            Self::Abandoned { by, silent_since } => {
                let why = match silent_since {
                    None => "has ended".to_owned(),
                    Some(since) => format!(
                        "stopped renewing the node's Lease {} ago",
                        HumanDuration(now.since(*since))
                    ),
                };
                Some(format!("abandoned: {} {why}", one_line(by)))
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Unknown => Value::Null,
            Self::Free => json!({ "state": "free" }),
            Self::Held { by, silent_since } => json!({
                "state": "held", "holder": by, "silentSince": silent_since.map(rfc3339),
            }),
            Self::Abandoned { by, silent_since } => json!({
                "state": "left", "holder": by, "silentSince": silent_since.map(rfc3339),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_holder(renewed: Option<u64>, is_dead: bool) -> LeaseHolder {
        let renewed = renewed.map(Time::from_millis);
        let now = Time::from_millis(1_000_000);
        LeaseHolder::of("me".into(), renewed, Duration::from_secs(30), is_dead, now)
    }

    #[test]
    fn a_holder_is_gone_when_it_is_dead_or_silent_for_too_long() {
        let held = |silent_since: Option<u64>| LeaseHolder::Held {
            by: "me".into(),
            silent_since: silent_since.map(Time::from_millis),
        };
        for renewed in [Some(1_000_000), Some(970_000), Some(2_000_000), None] {
            assert_eq!(lease_holder(renewed, false), held(None), "{renewed:?}");
        }
        for renewed in [969_999, 940_000] {
            assert_eq!(lease_holder(Some(renewed), false), held(Some(renewed)));
        }
        assert!(lease_holder(Some(939_999), false).is_abandoned());
        assert!(lease_holder(Some(1_000_000), true).is_abandoned());
    }
}
