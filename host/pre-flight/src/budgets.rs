//! Findings about disruption budgets.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::arithmetic::{PossiblePods, opening, replicas_change};
use crate::{Certainty, Concern, Finding, Input, in_doubt};
use scupper_engine::{Amount, Budget, BudgetLimit, GoverningBudget, Pod, UnhealthyPods};

/// Budgets that allow no eviction even when all their pods are healthy.
pub(super) fn closed(input: &Input<'_>, findings: &mut Vec<Finding>) {
    for (budget, mut pods) in held_by_one(input) {
        pods.retain(|pod| input.plan.surge.of_pod(&pod.id.uid).is_none());
        if pods.is_empty() {
            continue;
        }
        let state = input.namespaces.get(&budget.namespace);
        let raised = state.map_or(0, |state| state.raised(budget));
        let Some(limit) = budget.limit.filter(|_| budget.disruptions_allowed <= raised) else {
            continue;
        };
        let possible = state.and_then(|state| PossiblePods::of(budget, state));
        let is_closed = possible
            .as_ref()
            .is_some_and(|possible| possible.is_closed(limit));
        if !is_closed && !seems_closed(budget, raised) {
            continue;
        }
        let spares_unready = budget.unhealthy_pods == UnhealthyPods::AlwaysAllow;
        let is_certain = |pod: &&Pod| is_closed && !spares_unready && input.runs_until_evicted(pod);
        let (certain, likely): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_certain);
        for (certainty, pods) in [(Certainty::Certain, certain), (Certainty::Likely, likely)] {
            if pods.is_empty() {
                continue;
            }
            let mut finding = of_closed(budget, limit, possible.as_ref(), (certainty, &pods));
            let doubt = input.in_doubt(&pods).filter(|_| !spares_unready);
            finding.reason.extend(doubt.map(in_doubt));
            findings.push(finding);
        }
    }
}

/// The pods to evict whose eviction one budget decides on, by that budget.
pub(super) fn held_by_one<'a>(
    input: &Input<'a>,
) -> impl Iterator<Item = (&'a Budget, Vec<&'a Pod>)> + use<'a> {
    let mut held: BTreeMap<(&str, &str), (&Budget, Vec<&Pod>)> = BTreeMap::new();
    for (pod, governing) in input.evicted() {
        if let GoverningBudget::One(budget) = governing {
            let key = (budget.namespace.as_str(), budget.name.as_str());
            held.entry(key).or_insert((budget, Vec::new())).1.push(pod);
        }
    }
    held.into_values()
}

/// As far as its status shows, without so many pods that drains will take back.
pub(super) const fn seems_closed(budget: &Budget, raised: i32) -> bool {
    budget.observed && budget.desired_healthy >= budget.expected_pods.saturating_sub(raised)
}

/// Budgets of pods to evict that allow an eviction only if no drain has raised their Deployments.
pub(super) fn open_by_one<'a>(input: &Input<'a>) -> impl Iterator<Item = &'a Budget> + use<'a> {
    held_by_one(input).map(|(budget, _)| budget).filter(|budget| {
        let counts = matches!(budget.limit, Some(BudgetLimit::MinAvailable(_)));
        counts && budget.disruptions_allowed <= 1 && seems_closed(budget, 1) && !seems_closed(budget, 0)
    })
}

/// The smallest change after which a budget allows an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetChange {
    /// A change of the budget, such as `minAvailable: 3 -> 2`.
    pub change: String,
    /// More replicas that do the same; `None`: they do not help, or how many is not known, as of a percentage.
    pub more_replicas: Option<u32>,
}

/// What opens a budget, if by its status it blocks its pods even when all are healthy; `None`: it will allow
/// one, or its spec is unknown.
pub fn what_opens(budget: &Budget) -> Option<BudgetChange> {
    let limit = budget.limit.filter(|_| seems_closed(budget, 0))?;
    let expected = u32::try_from(budget.expected_pods).unwrap_or(0);
    let missing = match limit {
        BudgetLimit::MinAvailable(Amount::Pods(least)) => least.checked_sub(expected),
        _ => None,
    };
    Some(BudgetChange {
        change: change(budget, limit, None),
        more_replicas: missing.map(|missing| missing.saturating_add(1)),
    })
}

impl BudgetChange {
    /// The same for a budget of one workload with so many replicas, as findings say it.
    pub fn of_workload(&self, kind: &str, name: &str, replicas: u32) -> String {
        match self.more_replicas {
            None => self.change.clone(),
            Some(more) => {
                let more = replicas_change(kind, name, replicas, replicas.saturating_add(more));
                format!("{}, or {more}", self.change)
            }
        }
    }
}

impl fmt::Display for BudgetChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.change)?;
        match self.more_replicas {
            None => Ok(()),
            Some(1) => f.write_str(", or 1 more replica"),
            Some(more) => write!(f, ", or {more} more replicas"),
        }
    }
}

fn change(budget: &Budget, limit: BudgetLimit, possible: Option<&PossiblePods<'_>>) -> String {
    match u32::try_from(budget.expected_pods).unwrap_or(0) {
        // The disruption controller finds no replica count for a percentage.
        0 => String::from("set minAvailable to a number: the pods have no controller that counts replicas"),
        expected => opening(limit, expected, possible),
    }
}

fn of_closed(
    budget: &Budget,
    limit: BudgetLimit,
    possible: Option<&PossiblePods<'_>>,
    (certainty, pods): (Certainty, &[&Pod]),
) -> Finding {
    let Budget { namespace, name, .. } = budget;
    Finding {
        certainty,
        concern: Concern::ClosedBudget,
        pods: pods.iter().map(|pod| pod.id.clone()).collect(),
        budgets: Vec::from([format!("{namespace}/{name}")]),
        reason: format!("budget {namespace}/{name} ({limit}) blocks its pods even when all are healthy"),
        change: change(budget, limit, possible),
    }
}

/// Pods under more than one budget.
pub(super) fn several(input: &Input<'_>, findings: &mut Vec<Finding>) {
    let mut held: BTreeMap<(Certainty, Vec<String>), Vec<&Pod>> = BTreeMap::new();
    for (pod, governing) in input.evicted() {
        if !matches!(governing, GoverningBudget::Several(..)) {
            continue;
        }
        let certainty = if input.runs_until_evicted(pod) {
            Certainty::Certain
        } else {
            Certainty::Likely
        };
        let selecting = input.budgets.iter().filter(|budget| budget.selects(pod));
        let mut names: Vec<_> = selecting
            .map(|budget| format!("{}/{}", budget.namespace, budget.name))
            .collect();
        names.sort();
        held.entry((certainty, names)).or_default().push(pod);
    }
    for ((certainty, budgets), pods) in held {
        let doubt = input.in_doubt(&pods).map(in_doubt).unwrap_or_default();
        findings.push(Finding {
            certainty,
            concern: Concern::SeveralBudgets,
            pods: pods.iter().map(|pod| pod.id.clone()).collect(),
            reason: format!(
                "{} budgets select the pod ({}), and the API server refuses evictions under more than one{doubt}",
                budgets.len(),
                budgets.join(", ")
            ),
            change: format!(
                "delete {} of these budgets, or narrow their selectors",
                budgets.len() - 1
            ),
            budgets,
        });
    }
}
