//! Formats the state of a node as one JSON object.

use scupper_api::LifecycleEvent;
use scupper_engine::{Checkpoint, Condition, Phase, Reason, Time};
use serde_json::{Value, json};

use super::budgets::{blocking, groups};
use super::lines::{conditions, cordon};
use super::lookups::workload_json;
use super::{NodeStatus, RemainingPod, advice};
use crate::drain_status::{
    DrainStatus, Estimate, ForceStatus, VolumesStatus, WaveStatus, joined, reason_text,
};
use crate::pod_list::PodList;
use scupper_checkpoint::LeasedDrain;
use scupper_common::clock::rfc3339;

/// The state of a node as one object.
pub fn status_to_json(status: &NodeStatus, now: Time) -> Value {
    let node = &status.node;
    let held = status.remaining_pods(now);
    let left = status.left_to_undo();
    json!({
        "node": node.name, "cordon": cordon(node), "outOfService": node.is_out_of_service(),
        "drain": node.checkpoint.as_ref().map(|mark| drain(status, mark, now)),
        "planning": status.planning().map(LeasedDrain::to_json),
        "driver": status.driver.as_ref().map(|view| driver(view, status.current_driver_status(now).is_some())),
        "toUndo": left.policies.keys().collect::<Vec<_>>(), "whyNotUndone": left.policies,
        "lease": status.lease_holder.to_json(),
        "conditions": conditions(node).map(condition).collect::<Vec<_>>(),
        "lifecycleEvents": status.lifecycle_events.iter().map(event).collect::<Vec<_>>(),
        "pods": held.iter().map(|held| pod(held, status, now)).collect::<Vec<_>>(),
        "budgets": groups(status, &held, PodList::Each).iter().filter_map(|it| it.to_json(status, now)).collect::<Vec<_>>(),
        "notRead": status.details.unread,
    })
}

fn drain(status: &NodeStatus, mark: &Checkpoint, now: Time) -> Value {
    // A drain that has ended runs no hooks; its checkpoint keeps the unfinished ones.
    let is_running = mark.phase != Phase::Finished;
    let hooks = status.hooks(now).into_iter();
    let hooks = hooks.map(|hook| joined(hook.to_json(), json!({ "running": is_running })));
    json!({
        "name": mark.name, "trigger": mark.trigger, "phase": status.phase(mark, now).name(),
        "started": rfc3339(mark.started), "deadline": mark.deadline.map(rfc3339),
        "nodeIsOff": status.machine_is_off(mark), "hooks": hooks.collect::<Vec<_>>(),
    })
}

fn driver(view: &DrainStatus, fresh: bool) -> Value {
    let wave = view.wave.as_ref().map(WaveStatus::to_json);
    let volumes = view.volumes.as_ref().map(VolumesStatus::to_json);
    let force = view.force.as_ref().map(ForceStatus::to_json);
    json!({
        "at": rfc3339(view.at), "fresh": fresh, "wave": wave, "volumes": volumes,
        "force": force, "estimate": view.estimate.map(Estimate::to_json), "ended": view.ended,
        "podsNotTold": view.more,
    })
}

fn condition(condition: &Condition) -> Value {
    json!({
        "type": condition.kind, "status": condition.status, "reason": condition.reason,
        "message": condition.message, "since": condition.since.map(rfc3339),
    })
}

fn event(event: &LifecycleEvent) -> Value {
    json!({
        "name": event.name, "transition": event.transition, "state": event.claim.as_str(),
        "deadline": event.deadline().map(rfc3339), "deleting": event.deleting,
    })
}

fn pod(held: &RemainingPod<'_>, status: &NodeStatus, now: Time) -> Value {
    let (reason, node) = (held.reason.as_ref(), &status.node.name);
    let workload = held.workload(status);
    let source = if held.from_driver { "driver" } else { "api-server" };
    json!({
        "pod": held.pod.id.to_string(), "uid": held.pod.id.uid.as_str(), "reason": reason.map(Reason::name),
        "message": reason.map(|reason| reason_text(reason, now)), "wave": held.wave,
        "source": reason.map(|_| source), "since": held.since.map(rfc3339),
        "workload": workload.as_ref().map(workload_json),
        "next": reason.and_then(|reason| {
            advice::of_pod(reason, &held.pod.id, node, blocking(status, held), workload.as_ref())
        }),
    })
}
