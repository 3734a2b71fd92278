//! For how long hooks and disruption budgets have held the drain up. A moment counts once, however many hold it.

use core::time::Duration;

use super::Drain;
use crate::{Counts, HookPhase, Time};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waits {
    hooks: Held,
    budgets: Held,
}

/// Adds up the time for which something holds.
#[derive(Debug, Default)]
struct Held {
    since: Option<Time>,
    before: Duration,
    /// When an earlier process last added up.
    restored: Time,
}

impl Waits {
    /// What hooks and what budgets have cost.
    pub(super) fn totals(&self, now: Time) -> (Duration, Duration) {
        (self.hooks.total(now), self.budgets.total(now))
    }

    /// Adds to what an earlier process had measured.
    pub(super) fn restore(counts: &Counts) -> Self {
        let held = |before| Held {
            since: None,
            before,
            restored: counts.at,
        };
        Self {
            hooks: held(counts.totals.hook_wait),
            budgets: held(counts.totals.budget_wait),
        }
    }
}

impl Held {
    /// What holds now, and since when; `None`: nothing does.
    fn holds(&mut self, now: Time, since: Option<Time>) {
        let since = since.map(|since| since.max(self.restored));
        match (self.since, since) {
            (None, Some(_)) => self.since = since,
            (Some(_), None) => {
                self.before = self.total(now);
                self.since = None;
            }
            _ => {}
        }
    }

    fn total(&self, now: Time) -> Duration {
        let goes_on = self.since.map_or(Duration::ZERO, |since| now.since(since));
        self.before.saturating_add(goes_on)
    }
}

impl Drain {
    /// Looks at what holds the drain up now. A hook that an earlier process has begun has held it up since then.
    pub(super) fn measure(&mut self) {
        let puts_back = self.outcome.is_some();
        let hooks = self.hooks.open();
        let hooks = hooks.filter(|(key, _)| (key.phase == HookPhase::OnCancel) == puts_back);
        let hooks = hooks.filter(|(key, _)| self.is_waited_for(key));
        let since = hooks.map(|(_, hook)| hook.started()).min();
        self.waits.hooks.holds(self.now, since);
        let targets = self.plan_state.targets();
        let since = targets.filter_map(|(_, target)| target.budget_since()).min();
        let since = since.filter(|_| self.outcome.is_none());
        self.waits.budgets.holds(self.now, since);
    }
}
