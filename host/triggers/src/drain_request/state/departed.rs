//! Requests that were for this node and are not any more: deleted, or changed to name another node, which a watch by node
//! shows in the same way. A status that says that this node is drained for one of them is corrected, if it still exists.

use std::time::Duration;

use scupper_engine::Time;

use super::super::request::ObservedRequest;
use super::writes::{ConditionWrite, UnwrittenConditions, WriteSlot};
use super::{RequestState, TrackedRequest};

/// How long a refused correction is tried again: an API server that has just restarted refuses writes for some seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request that is not for this node any more.
#[derive(Debug)]
pub(super) struct DepartedRequest {
    observed: ObservedRequest,
    pub(super) write: WriteSlot,
    /// Since when the API server has refused the correction.
    refused: Option<Time>,
}

impl RequestState {
    /// The request is gone, or names another node.
    pub(super) fn forget(&mut self, uid: &str) {
        let Some(TrackedRequest { observed, write, .. }) = self.requests.remove(uid) else {
            return;
        };
        // A status that is being written may arrive after the change.
        if self.names.draining_since(&observed).is_some() || write.is_pending() {
            let refused = None;
            let departed = DepartedRequest {
                observed,
                write,
                refused,
            };
            self.departed.insert(uid.to_owned(), departed);
        }
    }

    /// The next correction that is due.
    pub(super) fn poll_correction(&mut self, now: Time) -> Option<ConditionWrite> {
        let mut departed = self.departed.values_mut();
        let departed = departed.find(|departed| departed.write.is_due(now))?;
        departed.write.begin();
        Some(ConditionWrite {
            reference: departed.observed.reference.clone(),
            conditions: vec![self.names.departed()],
        })
    }

    /// A write has ended that this process began for a request that is gone by now. The correction waits for any other,
    /// and is the last: from then on the driver of the other node writes. One that is refused may come too late, when that
    /// driver has written already.
    pub(super) fn handle_last_write(
        &mut self,
        write: &ConditionWrite,
        written: &Result<(), UnwrittenConditions>,
        now: Time,
    ) {
        let uid = &write.reference.uid;
        let Some(departed) = self.departed.get_mut(uid) else {
            return;
        };
        let is_correction = write.conditions == [self.names.departed()];
        match written {
            Ok(()) if is_correction => drop(self.departed.remove(uid)),
            Ok(()) => departed.write = WriteSlot::default(),
            Err(UnwrittenConditions::Refused(_)) if is_correction => {
                let since = *departed.refused.get_or_insert(now);
                if now < since + PATIENCE {
                    departed.write.failed(now);
                } else {
                    self.departed.remove(uid);
                }
            }
            Err(_) => departed.write.failed(now),
        }
    }
}
