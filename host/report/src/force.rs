//! Force at the deadline: in a plan, in lines and Events of a drain, and in its summary.

use scupper_engine::{
    ForceAtDeadline, HumanDuration, Notice, Plan, Pod, PodRef, Request, Summary, Verdict, named,
};
use serde_json::{Value, json};

use super::conditions::NodeEvent;
use super::messages::{count, one_line};

/// Maximum number of pods that are named; the others are counted.
const NAMED: usize = 8;

/// The lines about the pods that the drain deletes shortly before the deadline; none if it deletes nothing.
pub fn plan_force_lines(plan: &Plan, pods: &[Pod], force: Option<&ForceAtDeadline>) -> Vec<String> {
    let Some(force) = force else {
        return Vec::new();
    };
    let covered = covered(plan, pods, force);
    let mut lines = vec![format!(
        "{} before the deadline: deletes any remaining of {}{}, without asking disruption budgets, with a grace period of at most {}s",
        HumanDuration(force.within),
        count(covered.len(), "pod"),
        of_pods(force),
        force.grace_seconds
    )];
    if !covered.is_empty() {
        lines.push(format!(
            "  {}",
            one_line(&named(covered.iter().map(|pod| &pod.id), NAMED))
        ));
    }
    let awaited = pods.iter().filter(|pod| {
        let decision = plan.decision(&pod.id.uid);
        let awaits = decision.is_some_and(|decision| decision.verdict == Verdict::AwaitCompletion);
        awaits && !force.pods.covers(pod, Verdict::AwaitCompletion) && force.pods.covers(pod, Verdict::Evict)
    });
    let awaited: Vec<_> = awaited.map(|pod| &pod.id).collect();
    if !awaited.is_empty() {
        lines.push(format!(
            "  will not delete, because the plan lets them finish: {}",
            one_line(&named(awaited, NAMED))
        ));
    }
    lines
}

/// The same as JSON; null if nothing is deleted.
pub fn plan_force_to_json(plan: &Plan, pods: &[Pod], force: Option<&ForceAtDeadline>) -> Value {
    force.map_or(Value::Null, |force| {
        let covered = covered(plan, pods, force);
        json!({
            "withinSeconds": force.within.as_secs_f64(),
            "gracePeriodSeconds": force.grace_seconds,
            "namespaces": force.pods.namespaces,
            "priorityBelow": force.pods.priority_below,
            "awaitCompletion": force.pods.await_completion,
            "pods": covered.iter().map(|pod| pod.id.to_string()).collect::<Vec<_>>(),
        })
    })
}

/// The pods of the plan that would be deleted.
fn covered<'a>(plan: &Plan, pods: &'a [Pod], force: &ForceAtDeadline) -> Vec<&'a Pod> {
    let is_covered = |pod: &&Pod| {
        let decision = plan.decision(&pod.id.uid);
        decision.is_some_and(|decision| force.pods.covers(pod, decision.verdict))
    };
    pods.iter().filter(is_covered).collect()
}

fn of_pods(force: &ForceAtDeadline) -> String {
    match one_line(&force.pods.to_string()).as_str() {
        "" => String::new(),
        restriction => format!(" {restriction}"),
    }
}

/// What a drain deletes shortly before its deadline; `None`: nothing.
pub(crate) fn force_ahead_text(request: &Request) -> Option<String> {
    request.deadline?;
    let force = request.settings.at_deadline.as_ref()?;
    Some(format!(
        "{} before the deadline: deletes remaining pods{}, with a grace period of at most {}s",
        HumanDuration(force.within),
        of_pods(force),
        force.grace_seconds
    ))
}

/// The text about a deleted pod of which only the status shows that it was deleted.
pub(crate) fn forced_unseen_text(pod: &PodRef) -> String {
    format!("{pod} remained shortly before the deadline; deleted")
}

/// The same for pods whose names the status does not contain.
pub(crate) fn more_forced_text(pods: u32) -> String {
    let pods = count(pods as usize, "more pod");
    format!("{pods} remained shortly before the deadline; deleted")
}

/// The text about a deleted pod; `None`: the notice is about something else.
pub(crate) fn forced_text(notice: &Notice) -> Option<String> {
    let Notice::Forced {
        pod,
        grace_seconds,
        reason,
    } = notice
    else {
        return None;
    };
    Some(format!(
        "{pod} remained shortly before the deadline; deleted with a grace period of {grace_seconds}s: {}",
        one_line(&reason.to_string())
    ))
}

/// The Event about a deleted pod.
pub fn forced_event(request: &Request, notice: &Notice) -> Option<(PodRef, NodeEvent)> {
    let Notice::Forced { pod, .. } = notice else {
        return None;
    };
    let event = NodeEvent {
        warning: true,
        reason: "ForcedAtDeadline".to_owned(),
        note: one_line(&format!("{}: {}", request.name, forced_text(notice)?)),
    };
    Some((pod.clone(), event))
}

/// The pods that were deleted; `None`: none were.
pub(crate) fn forced_summary(summary: &Summary) -> Option<String> {
    let forced = &summary.forced;
    (!forced.is_empty()).then(|| {
        format!(
            "{} deleted shortly before the deadline: {}",
            count(forced.len(), "pod"),
            one_line(&named(forced, NAMED))
        )
    })
}
