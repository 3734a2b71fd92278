//! When the drain must be looked at although nothing happens.

use super::Drain;
use crate::{Phase, Time};

impl Drain {
    /// The earliest moment at which anything may be due. A moment that has passed has been looked at: what still
    /// waits then waits for an event.
    pub(super) fn next_timer(&self) -> Option<Time> {
        if self.phase == Phase::Finished {
            return None;
        }
        let asks = self.roster.targets().map(|(_, target)| target.not_before);
        let hooks = self.hooks.values().map(|hook| hook.due);
        let single = [
            self.throttle.until,
            self.writer.retry_at(),
            self.lister.retry_at,
            self.newcomers.retry_at,
        ];
        asks.chain(hooks)
            .chain(single)
            .chain(self.newcomers.due())
            .chain(self.memory.save_due())
            .chain(self.end_timers())
            .chain(self.wave_timers())
            .chain(self.list_timers())
            .chain(self.grace_timers())
            .chain(self.skip_timers())
            .chain(self.allowances.timers())
            .filter(|time| *time > self.now)
            .min()
    }
}
