//! Formats a notice as one JSON object per line, for machines.

use scupper_engine::{Blocker, Notice, Outcome, Plan, Pod, Request, Summary, Time, whole_millis};
use serde_json::{Map, Value, json};

use super::drain_status::{
    HookStatus, VolumesStatus, WaveStatus, hook_name_to_json, joined, pod_name_to_json, pod_to_json,
    volumes_to_json,
};
use super::surge::{step_to_json, surges_to_json};
use scupper_common::clock::rfc3339;

/// One notice of one drain.
pub fn notice_to_json(now: Time, request: &Request, notice: &Notice) -> Value {
    let (kind, fields) = match notice {
        Notice::Phase(at) => ("phase", json!({ "phase": at.to_string() })),
        Notice::Planned(plan) => ("plan", plan_to_json(plan)),
        Notice::Cordoned { ours } => ("cordoned", json!({ "ours": ours })),
        Notice::PlannerWaiting {
            policy,
            message,
            again,
        } => (
            "plannerWaiting",
            json!({ "policy": policy, "message": message, "again": rfc3339(*again) }),
        ),
        Notice::HookWaiting { .. } => {
            let hook = HookStatus::of(notice);
            ("hookWaiting", hook.map(|hook| hook.to_json()).unwrap_or_default())
        }
        Notice::HookDone {
            policy,
            phase,
            subject,
        } => ("hookDone", hook_name_to_json(policy, *phase, subject)),
        Notice::WaveStarted { pods, .. } => {
            let wave = WaveStatus::of(notice);
            let wave = wave.map(|wave| wave.to_json()).unwrap_or_default();
            ("waveStarted", joined(wave, json!({ "pods": pods })))
        }
        Notice::WaveOverdue { name } => ("waveOverdue", json!({ "name": name })),
        Notice::PodWaits { pod, reason } => ("podWaits", pod_to_json(pod, reason, now)),
        Notice::PodLeaving { pod, by } => (
            "podLeaving",
            joined(pod_name_to_json(pod), json!({ "by": by.name() })),
        ),
        Notice::Forced {
            pod,
            grace_seconds,
            reason,
        } => (
            "podForced",
            joined(
                pod_to_json(pod, reason, now),
                json!({ "gracePeriodSeconds": grace_seconds }),
            ),
        ),
        Notice::PodGone { pod, remaining } => (
            "podGone",
            joined(pod_name_to_json(pod), json!({ "remaining": remaining })),
        ),
        Notice::AwaitsVolumes { .. } => {
            let volumes = VolumesStatus::of(notice);
            (
                "volumesWaiting",
                volumes.map(|volumes| volumes.to_json()).unwrap_or_default(),
            )
        }
        Notice::VolumesSettled { left } => {
            let left = left.as_ref().map(volumes_to_json);
            ("volumesSettled", json!({ "volumesLeft": left }))
        }
        Notice::Surge { deployment, step } => ("surge", step_to_json(deployment, step)),
        Notice::Newcomer { pod } => ("newcomer", pod_name_to_json(pod)),
        Notice::UncordonedByOthers => ("uncordonedByOthers", json!({})),
        Notice::Uncordoned => ("uncordoned", json!({})),
        Notice::Retrying { task, message } => ("retrying", json!({ "task": task, "message": message })),
        Notice::Finished { outcome, summary } => ("finished", finished_to_json(outcome, summary)),
    };
    record(now, request, joined(json!({ "kind": kind }), fields))
}

/// A line of a drain with these fields.
pub(super) fn record(now: Time, request: &Request, fields: Value) -> Value {
    let head = json!({ "time": rfc3339(now), "drain": request.name, "node": request.node });
    joined(head, fields)
}

/// A plan that was not carried out, or the outcome if the drain would have ended immediately.
pub fn planned_to_json(node: &str, pods: &[Pod], result: &Result<Plan, Outcome>) -> Value {
    let names: Map<_, _> = pods
        .iter()
        .map(|pod| (pod.id.uid.as_str().to_owned(), pod.id.to_string().into()))
        .collect();
    match result {
        Ok(plan) => json!({ "node": node, "pods": names, "plan": plan_to_json(plan) }),
        Err(Outcome::Blocked { pods: blocked }) => {
            let blockers: Vec<_> = blocked
                .iter()
                .map(|blocker| {
                    let Blocker { pod, reason, policy } = blocker;
                    json!({ "pod": pod.to_string(), "reason": reason, "policy": policy })
                })
                .collect();
            json!({ "node": node, "pods": names, "outcome": "Blocked", "blockers": blockers })
        }
        Err(outcome) => {
            json!({ "node": node, "pods": names, "outcome": outcome.name(), "message": outcome.to_string() })
        }
    }
}

fn plan_to_json(plan: &Plan) -> Value {
    let decisions: Vec<_> = plan
        .decisions
        .iter()
        .map(|decision| {
            json!({
                "uid": decision.pod.as_str(), "verdict": decision.verdict.to_string(),
                "reason": decision.reason, "policy": decision.policy,
            })
        })
        .collect();
    let waves: Vec<_> = plan
        .waves
        .iter()
        .map(|wave| {
            json!({
                "name": wave.name, "pods": wave.pods.iter().map(|uid| uid.as_str()).collect::<Vec<_>>(),
                "maxParallel": wave.max_parallel, "maxGracePeriodSeconds": wave.max_grace_seconds,
                "timeoutSeconds": wave.timeout.map(|timeout| timeout.as_secs()), "policy": wave.policy,
            })
        })
        .collect();
    let plan_json = json!({ "decisions": decisions, "waves": waves });
    match surges_to_json(&plan.surge) {
        Some(surges) => joined(plan_json, json!({ "surge": surges })),
        None => plan_json,
    }
}

fn finished_to_json(outcome: &Outcome, summary: &Summary) -> Value {
    let stayed = summary.stayed.iter();
    let stayed: Vec<_> = stayed
        .map(|(pod, reason)| pod_to_json(pod, reason, summary.ended))
        .collect();
    json!({
        "stayed": stayed,
        "outcome": outcome.name(), "success": outcome.is_success(), "message": outcome.to_string(),
        "seconds": whole_millis(summary.ended.since(summary.started)) as f64 / 1000.0,
        "gone": summary.totals.gone, "deleted": summary.totals.deleted, "kept": summary.kept, "remaining": summary.remaining, "waves": summary.totals.waves,
        "evictionRequests": summary.totals.evictions, "deletionRequests": summary.totals.deletions,
        "budgetRefusals": summary.totals.budget_refusals,
        "hookSteps": summary.totals.hook_steps, "hookWaitSeconds": whole_millis(summary.totals.hook_wait) as f64 / 1000.0,
        "budgetWaitSeconds": whole_millis(summary.totals.budget_wait) as f64 / 1000.0,
        "volumeWaitSeconds": whole_millis(summary.volume_wait) as f64 / 1000.0,
        "volumesLeft": summary.volumes_left.as_ref().map(volumes_to_json),
        "toUndo": summary.to_undo.keys().collect::<Vec<_>>(), "whyNotUndone": summary.to_undo,
        "forced": summary.forced.iter().map(pod_name_to_json).collect::<Vec<_>>(),
    })
}
