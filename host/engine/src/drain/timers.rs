//! When the drain must be looked at although nothing happens.

use super::Drain;
use crate::Time;

/// The next moment of one kind.
type Timer = fn(&Drain) -> Option<Time>;

/// Every timer there is.
const TIMERS: &[Timer] = &[
    Drain::deadline,
    Drain::rollback_hooks_end,
    Drain::last_write_ends,
    Drain::cordon_news_end,
    Drain::node_news_end,
    |drain| drain.next(drain.hooks.due()),
    |drain| drain.next(drain.plan_state.targets().map(|(_, target)| target.not_before())),
    |drain| drain.next([drain.throttle.until()]),
    |drain| drain.next([drain.writer.retry_at()]),
    |drain| drain.next([drain.verification.list_retry_at()]),
    |drain| drain.next(drain.volume_timers()),
    |drain| drain.next([drain.newcomers.retry_at()]),
    |drain| drain.next(drain.plan_due()),
    |drain| drain.next(drain.checkpoint_state.save_due()),
    |drain| drain.next(drain.waves_overdue()),
    |drain| drain.next(drain.lists_due()),
    |drain| drain.next(drain.graces_over()),
    |drain| drain.next(drain.force_timers()),
    |drain| drain.next(drain.skips_due()),
    |drain| drain.next(drain.surges_due()),
    |drain| drain.next(drain.raises_due()),
    |drain| drain.next(drain.budget_tracker.doubted()),
];

impl Drain {
    /// The earliest moment at which anything may be due. A moment that has passed has been looked at: what still
    /// waits then waits for an event.
    pub(super) fn next_timer(&self) -> Option<Time> {
        if self.phase.is_last() {
            return None;
        }
        self.next(TIMERS.iter().filter_map(|timer| timer(self)))
    }

    /// The first of these moments that has not come yet.
    pub(super) fn next(&self, moments: impl IntoIterator<Item = Time>) -> Option<Time> {
        let to_come = moments.into_iter().filter(|moment| *moment > self.now);
        to_come.min()
    }
}
