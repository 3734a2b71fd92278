//! Determines why a pod is still there, from the API server's state alone.

use scupper_engine::{
    Budget, Checkpoint, GoverningBudget, Node, Phase, Pod, Reason, SavedHook, Subject, Time,
};

use crate::budget_numbers::need_text;

/// The reason of a pod; `None` if nothing on the API server explains it.
pub(super) fn reason(pod: &Pod, node: &Node, budgets: &[Budget], now: Time) -> Option<Reason> {
    if let Some(deletion) = pod.deletion {
        return Some(Reason::ending(pod, deletion, now));
    }
    if pod.is_mirror() {
        return Some(Reason::Kept);
    }
    let mark = node.checkpoint.as_ref().filter(|mark| is_draining(mark.phase))?;
    if let Some(hook) = hook(mark, pod) {
        return Some(Reason::HookRunning {
            policy: hook.policy.clone(),
            phase: hook.phase,
        });
    }
    if mark.phase.is_past_cordoning() && !node.unschedulable {
        return Some(Reason::NodeUncordoned);
    }
    budget(pod, budgets)
}

fn is_draining(phase: Phase) -> bool {
    phase == Phase::Planning || phase.follows_plan()
}

/// A hook that must finish before the eviction of this pod. A hook of a wave may concern other pods.
fn hook<'a>(mark: &'a Checkpoint, pod: &Pod) -> Option<&'a SavedHook> {
    mark.hooks.iter().find(|hook| match &hook.subject {
        Subject::Node => true,
        Subject::Pod(uid) => *uid == pod.id.uid,
        Subject::Wave(_) => false,
    })
}

/// The answer that the API server would give to the pod's eviction.
fn budget(pod: &Pod, budgets: &[Budget]) -> Option<Reason> {
    let budget = match GoverningBudget::of(pod, budgets) {
        GoverningBudget::None => return None,
        GoverningBudget::One(budget) => budget,
        GoverningBudget::Several(..) => {
            let message = names_of_budgets(pod, budgets).unwrap_or_default();
            return Some(Reason::MoreThanOneBudget { message });
        }
    };
    if !budget.observed {
        let message = format!("{} is still being processed", budget.name);
        return Some(Reason::BudgetNotObserved { message });
    }
    (budget.disruptions_allowed <= 0).then(|| Reason::BudgetExhausted {
        budget: budget.name.clone(),
        message: need_text(budget),
    })
}

/// The names of the budgets that select a pod, if there are several.
pub(super) fn names_of_budgets(pod: &Pod, budgets: &[Budget]) -> Option<String> {
    let selecting = budgets.iter().filter(|budget| budget.selects(pod));
    let mut names: Vec<&str> = selecting.map(|budget| budget.name.as_str()).collect();
    names.sort_unstable();
    (names.len() > 1).then(|| names.join(" and "))
}
