//! Whether the kubelet or a driver ends a drain before its timeout. It must not know which of them claims events: a
//! deadline that is too early is a kubelet's, which goes by the transition and knows nothing of `--timeout`.

use std::time::Duration;

use scupper_api::{LifecycleEvent, LifecycleTransition};
use scupper_engine::Time;

use scupper_report::FollowEvent;

/// What bounds a drain that was handed over.
pub(super) struct DeadlineLimit<'a> {
    transition: &'a LifecycleTransition,
    /// When the drain was requested, and its limit; `None`: it is not a drain, or the limit is already reported.
    given: Option<(Time, Option<Duration>)>,
}

impl<'a> DeadlineLimit<'a> {
    /// `given`: the time limit of a drain, and `Some(None)` where it has none.
    pub(super) fn of(
        transition: &'a LifecycleTransition,
        given: Option<Option<Duration>>,
        now: Time,
    ) -> Self {
        let given = given.map(|given| (now, given));
        Self { transition, given }
    }

    /// Told once, when the event has a deadline that comes too early.
    pub(super) fn observe(&mut self, event: &LifecycleEvent) -> Option<FollowEvent> {
        let deadline = event.deadline()?;
        let (asked, timeout) = self.given?;
        if timeout.is_some_and(|timeout| deadline >= asked + timeout) {
            return None;
        }
        self.given = None;
        Some(FollowEvent::Bounded {
            transition: self.transition.name.clone(),
            sla: self.transition.sla.unwrap_or_else(|| deadline.since(asked)),
            timeout,
        })
    }
}

#[cfg(test)]
mod tests {
    use scupper_api::{ClaimStatus, TransitionNodes};

    use super::*;

    #[test]
    fn an_early_end_is_reported_once_and_a_late_one_never() {
        let transition = LifecycleTransition {
            name: "drain.slm.k8s.io".to_owned(),
            start: "drain-started".to_owned(),
            end: "drain-complete".to_owned(),
            nodes: TransitionNodes::AllNodes,
            sla: Some(Duration::from_secs(300)),
            driver: "drain.slm.k8s.io".to_owned(),
        };
        let reported = |given: Option<Option<u64>>, deadline: Option<u64>| {
            let given = given.map(|given| given.map(Duration::from_secs));
            let mut limit = DeadlineLimit::of(&transition, given, Time::from_millis(1_000_000));
            let event = LifecycleEvent {
                name: "drain-a".to_owned(),
                transition: transition.name.clone(),
                claim: ClaimStatus::Claimed,
                sla: deadline.map(|seconds| Time::from_millis(1_000_000 + 1000 * seconds)),
                ..LifecycleEvent::default()
            };
            let first = limit.observe(&event);
            assert!(first.is_none() || limit.observe(&event).is_none());
            first.is_some()
        };
        assert!(reported(Some(Some(600)), Some(301)));
        assert!(reported(Some(None), Some(301)));
        assert!(!reported(Some(Some(300)), Some(301)));
        assert!(!reported(Some(Some(600)), None));
        assert!(!reported(Some(None), None));
        assert!(!reported(None, Some(301)), "an uncordon was given no time");
    }
}
