//! What disruption budgets still allow, reckoned from their last known status and from what we have spent since.
//!
//! The status lags behind: an eviction is counted by the API server at once and told by the watch a moment later.
//! Asking in between costs a refusal, and a refusal tells nothing new. So each ask is subtracted until the watch has
//! shown it. The reckoning may be wrong; then one pod in a while is asked all the same, and the answer sets it right.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::Drain;
use crate::{Budget, Duration, Guard, Pod, Reason, Time};

/// How long a budget without room is believed.
const BELIEVED: Duration = Duration::from_secs(15);

/// A budget's namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BudgetKey {
    namespace: String,
    name: String,
}

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// The API server granted it, or may have.
    Yes,
    /// It was refused, or never sent.
    No,
    /// It was refused because nothing is left.
    NothingLeft,
}

#[derive(Debug)]
struct Allowance {
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
}

/// All budgets' allowances.
#[derive(Debug, Default)]
pub(super) struct Allowances(BTreeMap<BudgetKey, Allowance>);

impl BudgetKey {
    pub(super) fn of(budget: &Budget) -> Self {
        Self::new(&budget.namespace, &budget.name)
    }

    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: String::from(namespace),
            name: String::from(name),
        }
    }
}

impl Allowance {
    const fn new(now: Time) -> Self {
        Self {
            in_flight: 0,
            counted: 0,
            granted: 0,
            exhausted: false,
            probing: false,
            disproved: false,
            since: now,
        }
    }

    fn left(&self, budget: &Budget) -> i64 {
        if self.exhausted {
            return 0;
        }
        let uncounted = self.in_flight.saturating_sub(self.counted);
        i64::from(budget.disruptions_allowed) - i64::from(self.granted) - i64::from(uncounted)
    }
}

impl Allowances {
    /// The watch shows another status. A smaller allowance means that evictions were counted, ours first.
    pub(super) fn update(&mut self, old: Option<&Budget>, new: &Budget, now: Time) {
        let allowance = self
            .0
            .entry(BudgetKey::of(new))
            .or_insert_with(|| Allowance::new(now));
        allowance.since = now;
        allowance.exhausted = false;
        allowance.disproved = false;
        let fewer = old.map_or(0, |old| {
            old.disruptions_allowed.saturating_sub(new.disruptions_allowed)
        });
        match u32::try_from(fewer) {
            Ok(counted) if counted > 0 => {
                let first = counted.min(allowance.granted);
                allowance.granted -= first;
                allowance.counted = (allowance.counted + counted - first).min(allowance.in_flight);
            }
            _ => allowance.granted = 0,
        }
    }

    /// An ask is on its way.
    fn ask(&mut self, budget: &Budget, now: Time) {
        let allowance = self
            .0
            .entry(BudgetKey::of(budget))
            .or_insert_with(|| Allowance::new(now));
        if allowance.left(budget) <= 0 {
            allowance.since = now;
            allowance.probing = true;
        }
        allowance.in_flight += 1;
    }

    /// An ask is answered, or was taken back.
    fn settle(&mut self, key: &BudgetKey, spent: Spent, now: Time) {
        let Some(allowance) = self.0.get_mut(key) else {
            return;
        };
        match spent {
            Spent::Yes if allowance.counted > 0 => allowance.counted -= 1,
            Spent::Yes => {
                allowance.disproved |= allowance.probing;
                allowance.granted += 1;
            }
            Spent::NothingLeft => {
                allowance.exhausted = true;
                allowance.disproved = false;
                allowance.since = now;
            }
            Spent::No => {}
        }
        allowance.in_flight = allowance.in_flight.saturating_sub(1);
        allowance.counted = allowance.counted.min(allowance.in_flight);
        allowance.probing &= allowance.in_flight > 0;
    }

    /// Whether one more pod may be asked under this budget now.
    fn allows(&mut self, budget: &Budget, now: Time) -> bool {
        let allowance = self
            .0
            .entry(BudgetKey::of(budget))
            .or_insert_with(|| Allowance::new(now));
        !budget.observed
            || allowance.disproved
            || allowance.left(budget) > 0
            || (allowance.in_flight == 0 && now >= allowance.since + BELIEVED)
    }

    /// When budgets are no longer believed.
    pub(super) fn doubted(&self) -> impl Iterator<Item = Time> {
        self.0.values().map(|allowance| allowance.since + BELIEVED)
    }
}

impl Drain {
    /// Why the pod's budget does not let it go now, as far as the watch tells.
    pub(super) fn budget_holds(&mut self, pod: &Pod) -> Option<Reason> {
        let key = self.charge(pod)?;
        let budget = self.world.budget(&key)?;
        if self.allowances.allows(budget, self.now) {
            return None;
        }
        let mut message = format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            budget.name, budget.desired_healthy, budget.current_healthy
        );
        if budget.disruptions_allowed > 0 {
            // Else it reads as if there were room.
            message.push_str(", and what it allows is spent on pods that were asked to leave");
        }
        Some(Reason::BudgetExhausted {
            budget: budget.name.clone(),
            message,
        })
    }

    /// Books the ask of a pod under its budget.
    pub(super) fn book(&mut self, pod: &Pod) -> Option<BudgetKey> {
        let key = self.charge(pod)?;
        self.allowances.ask(self.world.budget(&key)?, self.now);
        Some(key)
    }

    /// Settles what was booked.
    pub(super) fn settle(&mut self, charged: Option<BudgetKey>, spent: Spent) {
        if let Some(key) = charged {
            self.allowances.settle(&key, spent, self.now);
        }
    }

    /// The budget that pays for the pod's eviction, if one does.
    fn charge(&self, pod: &Pod) -> Option<BudgetKey> {
        match Guard::of(pod, self.world.budgets_around(pod)) {
            Guard::One(budget) => Some(BudgetKey::of(budget)),
            // Several are the API server's business.
            Guard::None | Guard::Several(..) => None,
        }
    }
}
