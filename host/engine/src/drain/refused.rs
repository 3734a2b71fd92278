//! Pods that may not leave. When such a pod changes, the planners decide on it again: an annotation that a policy waits for
//! may have come, or the pod has finished. Verdicts that let a pod leave or stay stand.

use core::time::Duration;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use super::backoff::Backoff;
use crate::filter::HOST_POLICY;
use crate::uid_map::UidMap;
use crate::{Decision, Pod, Reason, Time, Uid};

/// Changes of several pods become one plan.
const QUIET: Duration = Duration::from_secs(1);

/// Pods that may not leave, as the planners saw them.
#[derive(Debug, Default)]
pub(super) struct RefusedPods(BTreeMap<Uid, RefusedPod>);

#[derive(Debug)]
struct RefusedPod {
    /// As the planners saw it.
    seen: Pod,
    /// Since when it has differed from that.
    changed: Option<Time>,
    /// It is not planned again before: some pods change all the time.
    not_before: Time,
    /// How often it has been refused again.
    tries: u32,
}

impl RefusedPods {
    /// The planners do not let the pod leave.
    pub(super) fn refuse(&mut self, pod: &Pod, now: Time) {
        let uid = &pod.id.uid;
        let tries = self
            .0
            .remove(uid)
            .map_or(0, |known| known.tries.saturating_add(1));
        let not_before = match tries.checked_sub(1) {
            None => now,
            Some(waits) => Backoff::REPLAN.after(now, waits, uid.as_str()),
        };
        let refused = RefusedPod {
            seen: pod.clone(),
            changed: None,
            not_before,
            tries,
        };
        self.0.insert(uid.clone(), refused);
    }

    /// The pod is gone, or may leave.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.0.remove(uid);
    }

    /// Looks at the pods as they are now.
    pub(super) fn observe(&mut self, pods: &UidMap<Arc<Pod>>, now: Time) {
        for (uid, refused) in &mut self.0 {
            let differs = pods.get(uid).is_some_and(|pod| **pod != refused.seen);
            refused.changed = differs.then(|| refused.changed.unwrap_or(now));
        }
    }

    /// When the first of those that have changed is planned again.
    pub(super) fn due(&self) -> Option<Time> {
        let due = |refused: &RefusedPod| Some((refused.changed? + QUIET).max(refused.not_before));
        self.0.values().filter_map(due).min()
    }

    /// The pod may not leave, and the planners saw another state of it when they decided that.
    pub(super) fn has_changed(&self, pod: &Pod) -> bool {
        self.0
            .get(&pod.id.uid)
            .is_some_and(|refused| refused.seen != *pod)
    }
}

/// Why a pod may not leave.
pub(super) fn reason(decision: &Decision) -> Reason {
    Reason::Refused {
        policy: match decision.policy.as_str() {
            HOST_POLICY => String::new(),
            policy => String::from(policy),
        },
        message: decision.reason.clone(),
    }
}
