//! Lists the disruption budgets that cover the pods that a plan evicts, and whether they allow the eviction now.

use scupper_engine::{Budget, Plan, Pod, PodPhase, Verdict};
use serde_json::{Value, json};

use super::budget_numbers::{allowed_text, budget_to_json, need_text};
use super::drain_status::joined;
use super::messages::one_line;

/// A budget and the pods of a plan that it covers.
#[derive(Debug)]
struct Covered<'a> {
    budget: &'a Budget,
    pods: Vec<&'a Pod>,
}

/// Formats the budgets as lines for people; `None` as budgets: they could not be read.
pub fn plan_budget_lines(plan: &Plan, pods: &[Pod], budgets: Option<&[Budget]>) -> Vec<String> {
    let Some(budgets) = budgets else {
        return vec!["Disruption budgets could not be read.".to_owned()];
    };
    let evicted = evicted(plan, pods);
    let covered = covered(&evicted, budgets);
    if covered.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Disruption budgets of the pods to evict, as they are now:".to_owned()];
    for Covered { budget, pods } in &covered {
        let Budget { namespace, name, .. } = budget;
        let state = if budget.observed {
            need_text(budget)
        } else {
            "its status is not up to date".to_owned()
        };
        let (name, pods) = (one_line(name), pods.len());
        let does = match budget.observed && budget.disruptions_allowed == 0 {
            true => format!("blocks {pods} of these pods now"),
            false => format!(
                "covers {pods} of these pods and allows {} now",
                allowed_text(budget)
            ),
        };
        lines.push(format!("  budget {namespace}/{name} {does}: {state}"));
    }
    lines.extend(evicted.iter().filter_map(|pod| ambiguous_line(pod, &covered)));
    lines
}

/// The line about a pod with several budgets: the API server refuses its eviction, because it supports one budget per
/// pod.
fn ambiguous_line(pod: &Pod, covered: &[Covered<'_>]) -> Option<String> {
    let of_pod = covered.iter().filter(|it| it.budget.selects(pod));
    let names: Vec<_> = of_pod.map(|it| one_line(&it.budget.name)).collect();
    (names.len() > 1).then(|| {
        format!(
            "  {} is covered by {} budgets ({}); the API server refuses its eviction until only one is left",
            pod.id,
            names.len(),
            names.join(", ")
        )
    })
}

/// One object for each budget; `null`: the budgets could not be read.
pub fn plan_budgets_to_json(plan: &Plan, pods: &[Pod], budgets: Option<&[Budget]>) -> Value {
    let Some(budgets) = budgets else {
        return Value::Null;
    };
    let evicted = evicted(plan, pods);
    let covered = covered(&evicted, budgets);
    let all = covered.iter().map(|Covered { budget, pods }| {
        let pods: Vec<_> = pods.iter().map(|pod| pod.id.to_string()).collect();
        joined(
            budget_to_json(budget),
            json!({ "upToDate": budget.observed, "pods": pods }),
        )
    });
    Value::Array(all.collect())
}

/// The pods whose eviction a budget may refuse. Budgets apply neither to deletions nor to pods that do not run.
fn evicted<'a>(plan: &Plan, pods: &'a [Pod]) -> Vec<&'a Pod> {
    let is_evicted = |pod: &&Pod| {
        let decision = plan.decision(&pod.id.uid);
        decision.is_some_and(|it| it.verdict == Verdict::Evict)
            && !pod.is_finished()
            && pod.phase != PodPhase::Pending
            && pod.deletion.is_none()
    };
    let mut evicted: Vec<_> = pods.iter().filter(is_evicted).collect();
    evicted.sort_by(|one, other| one.id.cmp(&other.id));
    evicted
}

fn covered<'a>(evicted: &[&'a Pod], budgets: &'a [Budget]) -> Vec<Covered<'a>> {
    let mut budgets: Vec<&Budget> = budgets.iter().collect();
    budgets.sort_by_key(|budget| (&budget.namespace, &budget.name));
    let covered = budgets.into_iter().filter_map(|budget| {
        let pods = evicted.iter().copied().filter(|pod| budget.selects(pod));
        let pods: Vec<_> = pods.collect();
        (!pods.is_empty()).then_some(Covered { budget, pods })
    });
    covered.collect()
}
