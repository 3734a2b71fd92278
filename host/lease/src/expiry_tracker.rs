//! Whether a Lease is free, by our own observation. Its times come from another machine's clock and are ignored: a Lease
//! has expired when it has not changed for its duration, by our own clock, since we first saw it. Reads nothing but
//! `/proc`, for a holder on this machine.

use std::time::Duration;

use tokio::time::Instant;

use super::holder::HolderIdentity;
use scupper_cluster::Lease;

/// The longest duration that is accepted.
const LONGEST: Duration = Duration::from_secs(300);

/// Whether a Lease can be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseAvailability {
    /// It can be taken.
    Free,
    /// Another process holds it.
    HeldBy(HolderIdentity),
}

/// One version of a Lease, and since when this process has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    version: String,
    since: Instant,
}

/// What this process has observed of one Lease.
#[derive(Debug)]
pub(super) struct LeaseExpiryTracker {
    own: HolderIdentity,
    seen: Option<ObservedLease>,
}

impl LeaseExpiryTracker {
    /// `seen`: what another part of this process has observed of it.
    pub(super) const fn new(own: HolderIdentity, seen: Option<ObservedLease>) -> Self {
        Self { own, seen }
    }

    pub(super) fn observed(&self) -> Option<ObservedLease> {
        self.seen.clone()
    }

    /// The Lease as just read.
    pub(super) fn observe(&mut self, lease: &Lease, now: Instant) -> LeaseAvailability {
        let holder = HolderIdentity::parse(&lease.holder);
        if lease.holder.is_empty() || holder == self.own || self.own.knows_dead(&holder) {
            return LeaseAvailability::Free;
        }
        let seen = self.seen.take_if(|seen| seen.version == lease.version);
        let seen = self.seen.insert(seen.unwrap_or_else(|| ObservedLease {
            version: lease.version.clone(),
            since: now,
        }));
        if now.duration_since(seen.since) >= lease.length.min(LONGEST) {
            LeaseAvailability::Free
        } else {
            LeaseAvailability::HeldBy(holder)
        }
    }
}
