//! Whose a lease is, by what was observed of it. The times in it are another machine's, so they say nothing: a lease is
//! over when it has not changed for its length, by our own clock, since we saw it first. It must not do anything.

use std::time::Duration;

use tokio::time::Instant;

use super::holder::HolderIdentity;
use scupper_cluster::Lease;

/// No lease is believed to last longer.
const LONGEST: Duration = Duration::from_secs(300);

/// Whose a lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// Nobody's: it may be taken.
    Free,
    /// Another's.
    HeldBy(HolderIdentity),
}

/// What was observed of one lease.
#[derive(Debug)]
pub(super) struct LeaseState {
    own: HolderIdentity,
    seen: Option<(String, Instant)>,
}

impl LeaseState {
    pub(super) const fn new(own: HolderIdentity) -> Self {
        Self { own, seen: None }
    }

    /// It was read like this just now.
    pub(super) fn observe(&mut self, lease: &Lease, now: Instant) -> Availability {
        let holder = HolderIdentity::parse(&lease.holder);
        if lease.holder.is_empty() || holder == self.own || self.own.knows_dead(&holder) {
            return Availability::Free;
        }
        let since = match &self.seen {
            Some((version, since)) if *version == lease.version => *since,
            _ => {
                self.seen = Some((lease.version.clone(), now));
                now
            }
        };
        if now.duration_since(since) >= lease.length.min(LONGEST) {
            Availability::Free
        } else {
            Availability::HeldBy(holder)
        }
    }
}
