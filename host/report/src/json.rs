//! Formats a notice as one JSON object per line, for machines.

use scupper_engine::{Blocker, Notice, Outcome, Plan, Pod, Reason, Request, Subject, Summary, Time};
use serde_json::{Map, Value, json};

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
            json!({ "policy": policy, "message": message, "again": again.as_millis() }),
        ),
        Notice::HookWaiting {
            policy,
            phase,
            subject,
            since,
            progress,
            waiting_for,
        } => {
            let waiting: Vec<_> = waiting_for
                .iter()
                .map(|on| json!({ "what": on.what, "detail": on.detail, "since": on.since.map(Time::as_millis) }))
                .collect();
            let fields = json!({
                "policy": policy, "phase": phase.to_string(), "subject": subject_to_json(subject),
                "since": since.as_millis(), "progress": progress, "waitingFor": waiting,
            });
            ("hookWaiting", fields)
        }
        Notice::HookDone {
            policy,
            phase,
            subject,
        } => {
            let fields =
                json!({ "policy": policy, "phase": phase.to_string(), "subject": subject_to_json(subject) });
            ("hookDone", fields)
        }
        Notice::WaveStarted {
            name,
            number,
            of,
            pods,
        } => (
            "waveStarted",
            json!({ "name": name, "number": number, "of": of, "pods": pods }),
        ),
        Notice::WaveOverdue { name } => ("waveOverdue", json!({ "name": name })),
        Notice::PodWaits { pod, reason } => ("podWaits", with_pod(pod, reason_to_json(reason))),
        Notice::PodLeaving { pod } => ("podLeaving", with_pod(pod, json!({}))),
        Notice::PodGone { pod, remaining } => ("podGone", with_pod(pod, json!({ "remaining": remaining }))),
        Notice::Newcomer { pod } => ("newcomer", with_pod(pod, json!({}))),
        Notice::UncordonedByOthers => ("uncordonedByOthers", json!({})),
        Notice::Uncordoned => ("uncordoned", json!({})),
        Notice::Retrying { task, message } => ("retrying", json!({ "task": task, "message": message })),
        Notice::Finished { outcome, summary } => ("finished", finished_to_json(outcome, summary)),
    };
    let mut object = Map::new();
    object.insert("time".into(), now.as_millis().into());
    object.insert("drain".into(), request.name.as_str().into());
    object.insert("node".into(), request.node.as_str().into());
    object.insert("kind".into(), kind.into());
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    Value::Object(object)
}

/// A plan that was not carried out, or the outcome if the drain would have ended immediately.
pub fn planned_to_json(node: &str, pods: &[Pod], result: &Result<Plan, Outcome>) -> Value {
    let names: Map<_, _> = pods
        .iter()
        .map(|pod| (pod.id.uid.0.clone(), pod.id.to_string().into()))
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
                "uid": decision.pod.0, "verdict": decision.verdict.to_string(),
                "reason": decision.reason, "policy": decision.policy,
            })
        })
        .collect();
    let waves: Vec<_> = plan
        .waves
        .iter()
        .map(|wave| {
            json!({
                "name": wave.name, "pods": wave.pods.iter().map(|uid| &uid.0).collect::<Vec<_>>(),
                "maxParallel": wave.max_parallel, "maxGracePeriodSeconds": wave.max_grace_seconds,
                "timeoutSeconds": wave.timeout.map(scupper_engine::Duration::as_secs), "policy": wave.policy,
            })
        })
        .collect();
    json!({ "decisions": decisions, "waves": waves })
}

fn finished_to_json(outcome: &Outcome, summary: &Summary) -> Value {
    let stayed = summary.stayed.iter();
    let stayed: Vec<_> = stayed
        .map(|(pod, reason)| with_pod(pod, reason_to_json(reason)))
        .collect();
    json!({
        "stayed": stayed,
        "outcome": outcome.name(), "success": outcome.is_success(), "message": outcome.to_string(),
        "seconds": summary.ended.since(summary.started).as_millis() as f64 / 1000.0,
        "gone": summary.gone, "kept": summary.kept, "remaining": summary.remaining, "waves": summary.waves,
        "evictionRequests": summary.evictions, "budgetRefusals": summary.budget_refusals,
        "hookSteps": summary.hook_steps, "hookWaitSeconds": summary.hook_wait.as_millis() as f64 / 1000.0,
        "budgetWaitSeconds": summary.budget_wait.as_millis() as f64 / 1000.0,
    })
}

fn with_pod(pod: &scupper_engine::PodRef, fields: Value) -> Value {
    let mut object = Map::new();
    object.insert("pod".into(), pod.to_string().into());
    object.insert("uid".into(), pod.uid.0.as_str().into());
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    Value::Object(object)
}

fn reason_to_json(reason: &Reason) -> Value {
    json!({ "reason": reason.name(), "message": reason.to_string() })
}

fn subject_to_json(subject: &Subject) -> Value {
    match subject {
        Subject::Node => json!({ "node": true }),
        Subject::Wave(wave) => json!({ "wave": wave }),
        Subject::Pod(uid) => json!({ "pod": uid.0 }),
    }
}
