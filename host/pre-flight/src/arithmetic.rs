//! The disruption controller's arithmetic, turned round: can a budget ever allow an eviction?
//!
//! `disruptionsAllowed = currentHealthy - desiredHealthy`. A number as `minAvailable` is `desiredHealthy` itself; the
//! other limits count from the replicas that the workloads of the selected pods want.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use crate::namespace::{NamespaceState, Owner, Top, is_alive};
use scupper_engine::{Amount, Budget, BudgetLimit, Uid};

/// The pods of a budget, as many as there can ever be.
#[derive(Debug, Default)]
pub(super) struct PossiblePods<'a> {
    /// The workloads that have some, and how many pods each wants.
    workloads: BTreeMap<&'a Uid, (&'a Owner, u32)>,
    /// Pods without a controller.
    bare: u32,
}

impl<'a> PossiblePods<'a> {
    /// `None`: the number of pods is open.
    pub(super) fn of(budget: &Budget, state: &'a NamespaceState) -> Option<Self> {
        let mut possible = Self::default();
        for pod in state.pods.iter().filter(|pod| budget.selects(pod)) {
            match state.top(pod) {
                Top::Bare if is_alive(pod) => possible.bare += 1,
                Top::Bare => {}
                Top::Owner(owner) if possible.has(owner) => {}
                Top::Owner(owner) => {
                    let replicas = state.steady(owner)?;
                    possible.workloads.insert(&owner.uid, (owner, replicas));
                }
                Top::Unknown => return None,
            }
        }
        let mut others = state.owners().filter(|owner| !possible.has(owner));
        let grows = others.any(|owner| state.may_add(&budget.selector, owner));
        (!grows).then_some(possible)
    }

    fn has(&self, owner: &Owner) -> bool {
        self.workloads.contains_key(&owner.uid)
    }

    /// What the workloads want.
    fn wanted(&self) -> u32 {
        let wanted = self.workloads.values().map(|(_, replicas)| *replicas);
        wanted.fold(0, u32::saturating_add)
    }

    /// How many pods can be healthy at once.
    fn most(&self) -> u32 {
        self.wanted().saturating_add(self.bare)
    }

    /// The budget allows no eviction, however healthy its pods become.
    pub(super) fn is_closed(&self, limit: BudgetLimit) -> bool {
        self.is_closed_with(limit, 0)
    }

    /// Likewise with so many replicas more.
    pub(super) fn is_closed_with(&self, limit: BudgetLimit, more: u32) -> bool {
        let wanted = self.wanted().saturating_add(more);
        let counts_replicas = self.bare == 0 && wanted > 0;
        match limit {
            BudgetLimit::MinAvailable(Amount::Pods(least)) => self.most().saturating_add(more) <= least,
            BudgetLimit::MinAvailable(Amount::Percent(least)) => {
                // It also holds while some of the workloads have no pod: of fewer pods an even greater part is needed.
                counts_replicas && share(least, wanted) >= wanted
            }
            BudgetLimit::MaxUnavailable(Amount::Pods(most) | Amount::Percent(most)) => {
                counts_replicas && most == 0
            }
        }
    }

    /// The only workload, with its replicas.
    fn only(&self) -> Option<(&'a Owner, u32)> {
        let mut all = self.workloads.values().copied();
        all.next().filter(|_| all.next().is_none())
    }
}

/// How many replicas a workload should have instead.
pub(super) fn replicas_change(kind: &str, name: &str, now: u32, then: u32) -> String {
    format!("replicas of {kind} {name}: {now} -> {then}")
}

/// So many percent of the pods, rounded up as the disruption controller does.
pub(super) fn share(percent: u32, pods: u32) -> u32 {
    let share = (u64::from(percent) * u64::from(pods)).div_ceil(100);
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// The smallest changes that make the budget allow one eviction when all its pods are healthy. `expected`: how many pods
/// it counts, where its possible pods are not known.
pub(super) fn opening(limit: BudgetLimit, expected: u32, possible: Option<&PossiblePods<'_>>) -> String {
    let pods = possible.map_or(expected, PossiblePods::most);
    let opened = match limit {
        BudgetLimit::MinAvailable(Amount::Pods(_)) => Amount::Pods(pods.saturating_sub(1)),
        BudgetLimit::MinAvailable(Amount::Percent(_)) => {
            let most = u64::from(pods.saturating_sub(1)) * 100 / u64::from(pods.max(1));
            Amount::Percent(u32::try_from(most).unwrap_or(0))
        }
        BudgetLimit::MaxUnavailable(Amount::Pods(_)) => Amount::Pods(1),
        BudgetLimit::MaxUnavailable(Amount::Percent(_)) => Amount::Percent(1),
    };
    let mut change = format!("{limit} -> {opened}");
    if let Some((owner, replicas)) = possible.and_then(PossiblePods::only)
        && let Some(more) = replicas_to_open(limit, pods, replicas)
    {
        let more = replicas_change(&owner.kind, &owner.name, replicas, more);
        change.push_str(&format!(", or {more}"));
    }
    change
}

/// More replicas open only budgets whose demand does not grow with them. A share of the replicas grows slower than they
/// do, unless all of them are demanded.
fn replicas_to_open(limit: BudgetLimit, pods: u32, replicas: u32) -> Option<u32> {
    match limit {
        BudgetLimit::MinAvailable(Amount::Pods(least)) => {
            let missing = least.checked_sub(pods)?.checked_add(1)?;
            replicas.checked_add(missing)
        }
        BudgetLimit::MinAvailable(Amount::Percent(percent)) if percent < 100 => {
            // `replicas * (100 - percent) >= 100` leaves one pod.
            Some(100_u32.div_ceil(100 - percent).max(replicas.saturating_add(1)))
        }
        _ => None,
    }
}
