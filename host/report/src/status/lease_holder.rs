//! Whether somebody is at a drain that has not ended, by the lease of its node.

use scupper_engine::{Duration, Time};
use serde_json::{Value, json};

use crate::messages::one_line;

/// Who holds the lease of a node, as it looks from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaseHolder {
    /// It could not be read, or there is no drain that it would be held for.
    #[default]
    Unknown,
    /// There is none. A drain may go on without, where none can be had.
    Free,
    /// Somebody does, and says so.
    Held {
        /// Who, for people.
        by: String,
    },
    /// Its holder is gone.
    Abandoned {
        /// Who, for people.
        by: String,
        /// Its last sign; `None`: its process is known to have ended.
        silent_since: Option<Time>,
    },
}

impl LeaseHolder {
    /// By a lease that `by` holds for `length` from its last sign on.
    pub fn of(by: String, renewed: Option<Time>, length: Duration, is_dead: bool, now: Time) -> Self {
        // The times of a lease are another machine's: twice its length is enough for clocks that run apart.
        let allowed = Duration::from_secs(length.as_secs().saturating_mul(2));
        match renewed {
            _ if is_dead => Self::Abandoned {
                by,
                silent_since: None,
            },
            Some(since) if now.since(since) > allowed => Self::Abandoned {
                by,
                silent_since: Some(since),
            },
            _ => Self::Held { by },
        }
    }

    pub(super) const fn is_abandoned(&self) -> bool {
        matches!(self, Self::Abandoned { .. })
    }

    /// What is to be said of whoever is gone, or may be.
    pub(super) fn words(&self, now: Time) -> Option<String> {
        match self {
            Self::Unknown | Self::Held { .. } => None,
            Self::Free => Some("no process holds the node's Lease, so it may be abandoned".to_owned()),
            Self::Abandoned { by, silent_since } => {
                let why = match silent_since {
                    None => "has ended".to_owned(),
                    Some(since) => format!("stopped renewing the node's Lease {} ago", now.since(*since)),
                };
                Some(format!("abandoned: {} {why}", one_line(by)))
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Unknown => Value::Null,
            Self::Free => json!({ "state": "free" }),
            Self::Held { by } => json!({ "state": "held", "holder": by }),
            Self::Abandoned { by, silent_since } => json!({
                "state": "left", "holder": by, "silentSince": silent_since.map(Time::as_millis),
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
        let held = LeaseHolder::Held { by: "me".into() };
        for renewed in [Some(1_000_000), Some(940_000), Some(2_000_000), None] {
            assert_eq!(lease_holder(renewed, false), held, "{renewed:?}");
        }
        assert!(lease_holder(Some(939_999), false).is_abandoned());
        assert!(lease_holder(Some(1_000_000), true).is_abandoned());
    }
}
