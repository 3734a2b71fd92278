//! Groups the pods behind one disruption budget: what the budget allows, its owner, its unready pods, and granted
//! evictions that never completed.

use std::time::Duration;

use scupper_api::{BudgetDetails, UnreadyPod};
use scupper_engine::{Budget, HumanDuration, Reason, Time};
use serde_json::{Value, json};

use super::{NodeStatus, RemainingPod, advice};
use crate::budget_numbers::{allowed_text, budget_to_json, need_text};
use crate::drain_status::joined;
use crate::messages::{count, one_line};
use scupper_common::clock::rfc3339;

/// Time for which the API server counts a granted eviction if the pod is never deleted.
const COUNTED: Duration = Duration::from_secs(120);

/// An eviction granted less than this long ago may still be in progress.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// Pods blocked by the same budget, or one pod that no budget blocks.
pub(super) struct BudgetGroup<'a> {
    /// The budget that blocks all of them.
    pub(super) budget: Option<BlockingBudget<'a>>,
    pub(super) pods: Vec<&'a RemainingPod<'a>>,
}

/// A budget that blocks pods of this node.
pub(super) struct BlockingBudget<'a> {
    budget: &'a Budget,
    details: Option<&'a BudgetDetails>,
}

/// Groups all pods in order; the pods of a budget stand together at the position of the first one.
pub(super) fn groups<'a>(status: &'a NodeStatus, held: &'a [RemainingPod<'a>]) -> Vec<BudgetGroup<'a>> {
    let mut groups: Vec<BudgetGroup<'a>> = Vec::new();
    for pod in held {
        let budget = blocking(status, pod);
        let same = |group: &&mut BudgetGroup<'_>| match (&group.budget, budget) {
            (Some(known), Some(budget)) => std::ptr::eq(known.budget, budget),
            _ => false,
        };
        if let Some(group) = groups.iter_mut().find(same) {
            group.pods.push(pod);
            continue;
        }
        let budget = budget.map(|budget| BlockingBudget {
            budget,
            details: status.details.budgets.get(&key(budget)),
        });
        groups.push(BudgetGroup {
            budget,
            pods: vec![pod],
        });
    }
    groups
}

fn key(budget: &Budget) -> (String, String) {
    (budget.namespace.clone(), budget.name.clone())
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

impl BudgetGroup<'_> {
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
            advice::of_pod(reason, &held.pod.id, &status.node.name, Some(blocking.budget))
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
        let since = since.map(|since| format!(" for {}", HumanDuration(now.since(since))));
        let owner = self.details.and_then(|it| it.owner.as_deref());
        let owner = owner.map(|owner| format!("; owner: {}", one_line(owner)));
        format!(
            "budget {namespace}/{name} blocks {}: {} allowed now, {}{}{}",
            count(pods, "pod"),
            allowed_text(self.budget),
            need_text(self.budget),
            since
                .map(|since| format!(", none allowed{since}"))
                .unwrap_or_default(),
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
