//! Formats the state of a node as one JSON object.

use scupper_engine::{Checkpoint, Condition, Phase, Reason, SavedHook, Time};
use serde_json::{Value, json};

use super::budgets::groups;
use super::lines::{conditions, cordon, reason_text};
use super::{LifecycleEventStatus, NodeStatus, RemainingPod, advice};
use crate::drain_status::{DrainStatus, HookStatus};

/// The state of a node as one object.
pub fn status_to_json(status: &NodeStatus, now: Time) -> Value {
    let node = &status.node;
    let held = status.remaining_pods(now);
    json!({
        "node": node.name, "cordon": cordon(node),
        "drain": node.checkpoint.as_ref().map(|mark| drain(mark, status.current_driver_status(now))),
        "driver": status.driver.as_ref().map(|view| driver(view, status.current_driver_status(now).is_some())),
        "toUndo": status.to_undo(),
        "lease": status.lease_holder.to_json(),
        "conditions": conditions(node).map(condition).collect::<Vec<_>>(),
        "lifecycleEvents": status.lifecycle_events.iter().map(event).collect::<Vec<_>>(),
        "pods": held.iter().map(|held| pod(held, status, now)).collect::<Vec<_>>(),
        "budgets": groups(status, &held).iter().filter_map(|it| it.to_json(status, now)).collect::<Vec<_>>(),
        "notRead": status.details.unread,
    })
}

fn drain(mark: &Checkpoint, view: Option<&DrainStatus>) -> Value {
    let hooks: Vec<_> = match view {
        Some(view) => view.hooks.iter().map(|hook| published_hook(hook, mark)).collect(),
        None => mark.hooks.iter().map(|hook| saved_hook(hook, mark)).collect(),
    };
    json!({
        "name": mark.name, "trigger": mark.trigger, "phase": mark.phase.to_string(),
        "started": mark.started.as_millis(), "deadline": mark.deadline.map(Time::as_millis), "hooks": hooks,
    })
}

/// Whether the drain runs hooks. A drain that has ended does not; its checkpoint keeps the unfinished ones.
fn is_running(mark: &Checkpoint) -> bool {
    mark.phase != Phase::Finished
}

fn saved_hook(hook: &SavedHook, mark: &Checkpoint) -> Value {
    json!({
        "policy": hook.policy, "phase": hook.phase.to_string(), "since": hook.started.as_millis(),
        "running": is_running(mark),
    })
}

fn published_hook(hook: &HookStatus, mark: &Checkpoint) -> Value {
    let waiting = hook
        .waiting_for
        .iter()
        .map(|on| json!({ "what": on.what, "detail": on.detail, "since": on.since.map(Time::as_millis) }));
    json!({
        "policy": hook.policy, "phase": hook.phase.to_string(), "since": hook.began(&mark.hooks).as_millis(),
        "running": is_running(mark),
        "progress": hook.progress, "waitingFor": waiting.collect::<Vec<_>>(),
    })
}

fn driver(view: &DrainStatus, fresh: bool) -> Value {
    let wave = view
        .wave
        .as_ref()
        .map(|it| json!({ "name": it.name, "number": it.number, "of": it.of }));
    json!({ "at": view.at.as_millis(), "fresh": fresh, "wave": wave, "ended": view.ended, "podsNotTold": view.more })
}

fn condition(condition: &Condition) -> Value {
    json!({
        "type": condition.kind, "status": condition.status, "reason": condition.reason,
        "message": condition.message, "since": condition.since.map(Time::as_millis),
    })
}

fn event(event: &LifecycleEventStatus) -> Value {
    json!({
        "name": event.name, "transition": event.transition, "state": event.state,
        "deadline": event.deadline.map(Time::as_millis), "deleting": event.deleting,
    })
}

fn pod(held: &RemainingPod<'_>, status: &NodeStatus, now: Time) -> Value {
    let (reason, node) = (held.reason.as_ref(), &status.node.name);
    let source = if held.from_driver { "driver" } else { "api-server" };
    json!({
        "pod": held.pod.id.to_string(), "uid": held.pod.id.uid.0, "reason": reason.map(Reason::name),
        "message": reason.map(|reason| reason_text(reason, now)), "wave": held.wave,
        "source": reason.map(|_| source), "since": held.since.map(Time::as_millis),
        "workload": held.workload(status).map(|workload| workload.to_json()),
        "next": reason.and_then(|reason| advice::of_pod(reason, &held.pod.id, node)),
    })
}
