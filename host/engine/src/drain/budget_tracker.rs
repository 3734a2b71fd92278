//! What disruption budgets still allow: their last known status, minus what our evictions have used since.
//!
//! The status lags behind: the API server counts an eviction at once, and the watch shows it a moment later.
//! A request in between is refused, which shows nothing new. So each request is subtracted until the watch has
//! shown it. The estimate may be wrong; then one request goes out now and then all the same, and its answer corrects it.

use core::time::Duration;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Drain;
use crate::{Budget, Pod, Reason, Time};

/// How long a budget without room is believed.
const BELIEVED: Duration = Duration::from_secs(15);

/// A budget's namespace and name, shared by all that concerns it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BudgetKey(Arc<(String, String)>);

/// How a request was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charged {
    /// The API server granted it, or may have.
    Yes,
    /// It was refused, or never sent.
    No,
    /// It was refused because nothing is left.
    NothingLeft,
}

#[derive(Debug)]
struct TrackedBudget {
    /// What the status allows.
    allowed: i32,
    /// The status is that of the budget as it is.
    observed: bool,
    /// Asks not yet answered.
    in_flight: u32,
    /// Of these, how many the status has counted already.
    counted: u32,
    /// Asks granted that the status has not counted yet.
    granted: u32,
    /// The API server said that nothing is left.
    exhausted: bool,
    /// An ask is on its way although nothing should be left.
    probing: bool,
    /// Such an ask was granted: the status is not to be believed.
    disproved: bool,
    /// Since when the status, or the last answer, is believed.
    since: Time,
    /// Why a pod waits while nothing is left.
    hold: Reason,
}

/// What budgets hold, as far as it was asked.
#[derive(Default)]
pub(super) struct HoldsOfBudgets<'a>(Vec<(&'a BudgetKey, &'a Budget, Option<&'a Reason>)>);

/// All budgets.
#[derive(Debug, Default)]
pub(super) struct BudgetTracker(BTreeMap<BudgetKey, TrackedBudget>);

impl BudgetKey {
    pub(super) fn of(budget: &Budget) -> Self {
        Self::new(&budget.namespace, &budget.name)
    }

    /// It is a copy of that very one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self(Arc::new((String::from(namespace), String::from(name))))
    }
}

impl TrackedBudget {
    fn new(now: Time, budget: &Budget) -> Self {
        Self {
            allowed: budget.disruptions_allowed,
            observed: budget.observed,
            in_flight: 0,
            counted: 0,
            granted: 0,
            exhausted: false,
            probing: false,
            disproved: false,
            since: now,
            hold: exhausted(budget),
        }
    }

    /// Nothing is left of it, as far as it is believed.
    fn is_closed(&self) -> bool {
        self.observed && !self.disproved && self.remaining() <= 0
    }

    fn remaining(&self) -> i64 {
        if self.exhausted {
            return 0;
        }
        let uncounted = self.in_flight.saturating_sub(self.counted);
        i64::from(self.allowed) - i64::from(self.granted) - i64::from(uncounted)
    }
}

impl BudgetTracker {
    /// The watch shows another status. A smaller allowance means that evictions were counted, ours first.
    pub(super) fn update(&mut self, old: Option<&Budget>, new: &Budget, now: Time) {
        let key = BudgetKey::of(new);
        let Some(tracked) = self.0.get_mut(&key) else {
            self.0.insert(key, TrackedBudget::new(now, new));
            return;
        };
        (tracked.allowed, tracked.observed) = (new.disruptions_allowed, new.observed);
        tracked.hold = exhausted(new);
        tracked.since = now;
        tracked.exhausted = false;
        tracked.disproved = false;
        let fewer = old.map_or(0, |old| {
            old.disruptions_allowed.saturating_sub(new.disruptions_allowed)
        });
        match u32::try_from(fewer) {
            Ok(counted) if counted > 0 => {
                let first = counted.min(tracked.granted);
                tracked.granted -= first;
                tracked.counted = (tracked.counted + counted - first).min(tracked.in_flight);
            }
            _ => tracked.granted = 0,
        }
    }

    /// An ask is on its way.
    fn ask(&mut self, key: &BudgetKey, now: Time) {
        let Some(tracked) = self.0.get_mut(key) else {
            return;
        };
        if tracked.remaining() <= 0 {
            tracked.since = now;
            tracked.probing = true;
        }
        tracked.in_flight += 1;
    }

    /// An ask is answered, or was taken back.
    fn release(&mut self, key: &BudgetKey, charged: Charged, now: Time) {
        let Some(tracked) = self.0.get_mut(key) else {
            return;
        };
        match charged {
            Charged::Yes if tracked.counted > 0 => tracked.counted -= 1,
            Charged::Yes => {
                tracked.disproved |= tracked.probing;
                tracked.granted += 1;
            }
            Charged::NothingLeft => {
                tracked.exhausted = true;
                tracked.disproved = false;
                tracked.since = now;
            }
            Charged::No => {}
        }
        tracked.in_flight = tracked.in_flight.saturating_sub(1);
        tracked.counted = tracked.counted.min(tracked.in_flight);
        tracked.probing &= tracked.in_flight > 0;
    }

    /// Why no more pod may be asked under this budget now. All budgets that were ever seen are tracked.
    fn holds(&self, key: &BudgetKey, now: Time) -> Option<&Reason> {
        let tracked = self.0.get(key)?;
        let is_doubted = tracked.in_flight == 0 && now >= tracked.since + BELIEVED;
        (tracked.is_closed() && !is_doubted).then_some(&tracked.hold)
    }

    /// When budgets without room are no longer believed.
    pub(super) fn doubted(&self) -> impl Iterator<Item = Time> {
        let closed = self.0.values().filter(|tracked| tracked.is_closed());
        closed.map(|tracked| tracked.since + BELIEVED)
    }
}

fn exhausted(budget: &Budget) -> Reason {
    let mut message = format!(
        "The disruption budget {} needs {} healthy pods and has {} currently",
        budget.name, budget.desired_healthy, budget.current_healthy
    );
    // Also of evictions that the API server has granted, and whose pods the budget's controller has not counted out yet.
    if budget.disruptions_allowed > 0 || budget.current_healthy > budget.desired_healthy {
        // Else it reads as if there were room.
        message.push_str(Budget::SPENT);
    }
    Reason::BudgetExhausted {
        budget: budget.name.clone(),
        message,
    }
}

impl Drain {
    /// Why the pod's budget does not allow its eviction now, as far as the watch shows.
    pub(super) fn budget_holds(&self, pod: &Pod) -> Option<&Reason> {
        let key = self.cluster.governing_budget(pod)?;
        self.budget_tracker.holds(key, self.now)
    }

    /// The same for many pods, most of which have budgets in common.
    pub(super) fn budget_holds_all<'a>(
        &'a self,
        pod: &Pod,
        known: &mut HoldsOfBudgets<'a>,
    ) -> Option<&'a Reason> {
        let key = self.cluster.selecting_budget(pod)?;
        let same = |(known, ..): &&(&BudgetKey, _, _)| known.is(key);
        let (budget, hold) = match known.0.iter().find(same) {
            Some((_, budget, hold)) => (*budget, *hold),
            None => {
                let budget = self.cluster.budget(key)?;
                let hold = self.budget_tracker.holds(key, self.now);
                known.0.push((key, budget, hold));
                (budget, hold)
            }
        };
        hold.filter(|_| budget.governs(pod))
    }

    /// Reserves a disruption of the pod's budget for a request.
    pub(super) fn reserve(&mut self, pod: &Pod) -> Option<BudgetKey> {
        let key = self.cluster.governing_budget(pod)?;
        self.budget_tracker.ask(key, self.now);
        Some(key.clone())
    }

    /// Releases what was reserved, as the answer says.
    pub(super) fn release(&mut self, reserved: Option<BudgetKey>, charged: Charged) {
        if let Some(key) = reserved {
            self.budget_tracker.release(&key, charged, self.now);
        }
    }
}
