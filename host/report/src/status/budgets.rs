//! Groups the pods behind one disruption budget: what the budget allows, its owner, its unready pods, and granted
//! evictions that never completed.

use std::time::Duration;

use scupper_api::{BudgetDetails, UnreadyPod};
use scupper_engine::{Budget, HumanDuration, PodRef, Reason, Time};
use serde_json::{Value, json};

use super::{NodeStatus, RemainingPod, advice};
use crate::budget_numbers::{allowed_text, budget_to_json, need_text};
use crate::drain_status::joined;
use crate::messages::{count, one_line};
use crate::pod_list::{PodList, group_name};
use scupper_common::clock::rfc3339;

/// Time for which the API server counts a granted eviction if the pod is never deleted.
const COUNTED: Duration = Duration::from_secs(120);

/// An eviction granted less than this long ago may still be in progress.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// Pods blocked by the same budget, or pods with the same reason that no budget blocks.
pub(super) struct BudgetGroup<'a> {
    /// The budget that blocks all of them.
    pub(super) budget: Option<BlockingBudget<'a>>,
    pods: Vec<&'a RemainingPod<'a>>,
    pub(super) rows: Vec<PodRow<'a>>,
}

/// Pods with the same reason.
pub(super) struct PodRow<'a> {
    /// The one that has waited the longest.
    pub(super) held: &'a RemainingPod<'a>,
    /// How many they are.
    pub(super) pods: usize,
}

/// A budget that blocks pods of this node.
pub(super) struct BlockingBudget<'a> {
    budget: &'a Budget,
    details: Option<&'a BudgetDetails>,
}

/// Groups all pods in order; the pods of a budget stand together at the position of the first one.
pub(super) fn groups<'a>(
    status: &'a NodeStatus,
    held: &'a [RemainingPod<'a>],
    list: PodList,
) -> Vec<BudgetGroup<'a>> {
    let mut groups: Vec<(Option<&'a Budget>, Vec<&'a RemainingPod<'a>>)> = Vec::new();
    for pod in held.iter().filter(|held| status.is_listed(held, list)) {
        let budget = blocking(status, pod);
        let is_same = |known: &Option<&Budget>| match (known, budget) {
            (Some(known), Some(budget)) => std::ptr::eq(*known, budget),
            (known, budget) => known.is_none() && budget.is_none(),
        };
        match groups.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((budget, vec![pod])),
        }
    }
    let mut groups: Vec<_> = groups
        .into_iter()
        .flat_map(|(budget, pods)| BudgetGroup::of(status, budget, &pods, list))
        .collect();
    // A pod that no budget blocks stands among the others where its name belongs.
    groups.sort_by(|one, other| one.first().cmp(&other.first()));
    groups
}

fn key(budget: &Budget) -> (String, String) {
    (budget.namespace.clone(), budget.name.clone())
}

/// What is said of a pod, without what differs from pod to pod: numbers, times, and its own name in an error.
pub(crate) fn same_reason_key(reason: &Reason) -> (&'static str, &str) {
    let what = match reason {
        Reason::WaveNotStarted { wave } => wave,
        Reason::PlannerFailed { policy, .. } | Reason::HookRunning { policy, .. } => policy,
        Reason::TerminatingPastGrace { finalizers, .. } => finalizers,
        Reason::BudgetExhausted { budget, .. } => budget,
        Reason::EvictionRefused { message, .. } | Reason::ArrivedDuringDrain { message, .. } => message,
        _ => "",
    };
    (reason.name(), what)
}

/// The one budget that blocks a pod, if the caller may read it.
pub(super) fn blocking<'a>(status: &'a NodeStatus, held: &RemainingPod<'_>) -> Option<&'a Budget> {
    let budgets = status.budgets.iter();
    let mut selecting = budgets.filter(|budget| budget.selects(held.pod));
    match held.reason.as_ref()? {
        Reason::BudgetExhausted { budget, .. } if !budget.is_empty() => {
            selecting.find(|known| known.name == *budget)
        }
        Reason::BudgetExhausted { .. } | Reason::BudgetNotObserved { .. } => selecting.next(),
        _ => None,
    }
}

impl<'a> PodRow<'a> {
    fn of(pods: &[&'a RemainingPod<'a>]) -> Option<Self> {
        let held = pods.iter().rev().max_by_key(|held| held.weight())?;
        Some(Self {
            held,
            pods: pods.len(),
        })
    }

    pub(super) fn name(&self) -> String {
        group_name(&self.held.pod.id, self.pods)
    }
}

impl<'a> BudgetGroup<'a> {
    /// The pods of a budget are one group; of those that no budget blocks, each row is one.
    fn of(
        status: &'a NodeStatus,
        budget: Option<&'a Budget>,
        pods: &[&'a RemainingPod<'a>],
        list: PodList,
    ) -> Vec<Self> {
        let said = |held: &&'a RemainingPod<'a>| held.reason.as_ref().map(same_reason_key);
        let rows = list.grouped(pods.iter().copied(), |held| Some(held.pod), said);
        match budget {
            Some(budget) => vec![Self {
                budget: Some(BlockingBudget {
                    budget,
                    details: status.details.budgets.get(&key(budget)),
                }),
                pods: pods.to_vec(),
                rows: rows.iter().filter_map(|pods| PodRow::of(pods)).collect(),
            }],
            None => rows
                .into_iter()
                .map(|pods| Self {
                    budget: None,
                    rows: PodRow::of(&pods).into_iter().collect(),
                    pods,
                })
                .collect(),
        }
    }

    fn first(&self) -> Option<&'a PodRef> {
        self.pods.first().map(|held| &held.pod.id)
    }

    /// The lines about all pods of the group; the suggested command comes last.
    pub(super) fn head_lines(&self, status: &NodeStatus, now: Time) -> Vec<String> {
        let Some(blocking) = &self.budget else {
            return Vec::new();
        };
        let mut lines = vec![format!("    {}", blocking.text(self.pods.len(), now))];
        for pod in blocking.unready() {
            lines.push(format!("      not ready: {}", blocking.unready_text(pod, now)));
        }
        for (pod, at) in blocking.cut_off(status, now) {
            let left = HumanDuration((at + COUNTED).since(now));
            lines.push(format!(
                "      {}/{}: its eviction was granted {} ago, but the pod was never deleted: the request was cut off; \
                 the budget counts it as evicted for another {left}",
                blocking.budget.namespace,
                one_line(pod),
                HumanDuration(now.since(at)),
            ));
        }
        let first = self
            .pods
            .first()
            .and_then(|held| Some((held, held.reason.as_ref()?)));
        let next = first.and_then(|(held, reason)| {
            let (pod, workload) = (&held.pod.id, held.workload(status));
            let (node, budget) = (&status.node.name, Some(blocking.budget));
            advice::of_pod(reason, pod, node, budget, workload.as_ref())
        });
        lines.extend(next.map(|next| format!("      next: {}", one_line(&next))));
        lines
    }

    /// The group as one object; `None` if no budget blocks these pods.
    pub(super) fn to_json(&self, status: &NodeStatus, now: Time) -> Option<Value> {
        let blocking = self.budget.as_ref()?;
        let budget = blocking.budget;
        let unready = blocking.unready().iter().map(|pod| {
            json!({
                "pod": format!("{}/{}", budget.namespace, pod.name), "node": pod.node, "why": pod.why,
                "since": pod.since.map(rfc3339),
            })
        });
        let cut_off = blocking.cut_off(status, now).map(|(pod, at)| {
            json!({
                "pod": format!("{}/{pod}", budget.namespace), "granted": rfc3339(at),
                "countedUntil": rfc3339(at + COUNTED),
            })
        });
        let pods = self.pods.iter().map(|held| held.pod.id.to_string());
        let fields = json!({
            "owner": blocking.details.and_then(|it| it.owner.as_deref()),
            "since": blocking.details.and_then(|it| it.since).map(rfc3339),
            "pods": pods.collect::<Vec<_>>(), "notReady": unready.collect::<Vec<_>>(),
            "cutOff": cut_off.collect::<Vec<_>>(),
        });
        Some(joined(budget_to_json(budget), fields))
    }
}

impl<'a> BlockingBudget<'a> {
    fn text(&self, pods: usize, now: Time) -> String {
        let Budget { namespace, name, .. } = self.budget;
        let since = self.details.and_then(|it| it.since);
        let since =
            since.map(|since| format!("; no eviction allowed for {}", HumanDuration(now.since(since))));
        let allows = match self.budget.disruptions_allowed {
            ..=0 => String::new(),
            _ => format!("; it allows {} now", allowed_text(self.budget)),
        };
        let owner = self.details.and_then(|it| it.owner.as_deref());
        let owner = owner.map(|owner| format!("; owner: {}", one_line(owner)));
        format!(
            "budget {namespace}/{name} blocks {}: {}{allows}{}{}",
            count(pods, "pod"),
            need_text(self.budget),
            since.unwrap_or_default(),
            owner.unwrap_or_default(),
        )
    }

    fn unready(&self) -> &'a [UnreadyPod] {
        self.details.map(|it| it.unready.as_slice()).unwrap_or_default()
    }

    fn unready_text(&self, pod: &UnreadyPod, now: Time) -> String {
        let place = match pod.node.as_str() {
            "" => "on no node yet".to_owned(),
            node => format!("on {}", one_line(node)),
        };
        let since = pod
            .since
            .map(|since| format!(" for {}", HumanDuration(now.since(since))));
        format!(
            "{}/{} {place}{}: {}",
            self.budget.namespace,
            one_line(&pod.name),
            since.unwrap_or_default(),
            one_line(&pod.why)
        )
    }

    /// Pods that still exist although their eviction was granted.
    fn cut_off(&self, status: &NodeStatus, now: Time) -> impl Iterator<Item = (&'a str, Time)> {
        let granted = self.details.into_iter().flat_map(|it| &it.granted);
        let is_ending = |name: &str| {
            let mut pods = status.pods.iter();
            pods.any(|pod| {
                pod.id.namespace == self.budget.namespace && pod.id.name == name && pod.deletion.is_some()
            })
        };
        let stays = |(name, at): &(&String, &Time)| !is_ending(name) && now.since(**at) >= ON_ITS_WAY;
        let pods: Vec<_> = granted
            .filter(stays)
            .map(|(name, at)| (name.as_str(), *at))
            .collect();
        pods.into_iter()
    }
}
