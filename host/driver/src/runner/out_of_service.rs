//! A drain of a machine that is off (`--node-is-off`): a planner and hooks of the host, behind all policies.
//!
//! The planner makes one wave of deletions: budgets and waves mean nothing if no pod runs. The hook taints the node
//! after the policies' `before-drain`, so that the controllers remove the pods that no kubelet ends. A cancel removes
//! the taint again; a node that becomes Ready cancels the drain.

use std::time::Duration;

use scupper_engine::{
    Checkpoint, Condition, Event, HookPhase, Intent, Node, Plan, PlanAnswer, PolicyInfo, Request,
    StepOutcome, Verdict, Wave,
};

use scupper_cluster::{Cluster, KubernetesEvent, OUT_OF_SERVICE_TAINT, OutOfService, Severity, WriteError};
use scupper_report::PolicyMessage;

/// Its name in plans and hooks. No policy can have it.
pub const POLICY: &str = "out of service";

const REASON: &str = "the machine is off: deleted without asking its disruption budgets";
/// The reasons of the Events about the taint.
const TAINTED: &str = "OutOfService";
const UNTAINTED: &str = "BackInService";
const STILL_TAINTED: &str = "StillOutOfService";

/// How long the hook waits before it repeats a failed write.
const AGAIN: Duration = Duration::from_secs(1);

/// Adds the planner and the hooks to a drain with `--node-is-off`, and the cancel hook to a drain that continues such a
/// drain without the flag.
#[must_use]
pub fn planned(mut request: Request, node: Option<&Node>) -> Request {
    let mark = node.and_then(|node| node.annotations.get(Node::OUT_OF_SERVICE));
    let phases = match request.settings.machine_is_off {
        true => vec![HookPhase::BeforeDrain, HookPhase::OnCancel],
        false if mark == Some(&request.id) => vec![HookPhase::OnCancel],
        false => return request,
    };
    let is_there = request.policies.iter().any(|policy| policy.name == POLICY);
    if request.intent == Intent::Drain && !is_there {
        request.policies.push(PolicyInfo {
            name: POLICY.to_owned(),
            planner: request.settings.machine_is_off,
            phases,
            ..PolicyInfo::default()
        });
    }
    request
}

/// Answers for the planner: every pod that is to leave is deleted, all in one wave.
pub fn plan(node: Option<&Node>, mut draft: Plan) -> PlanAnswer {
    if let Some(message) = node.and_then(alive) {
        return PlanAnswer::Refused { message };
    }
    for decision in &mut draft.decisions {
        if decision.verdict.leaves() {
            decision.verdict = Verdict::Delete;
            decision.reason = REASON.to_owned();
        }
    }
    let pods: Vec<_> = draft.waves.drain(..).flat_map(|wave| wave.pods).collect();
    if !pods.is_empty() {
        draft.waves.push(Wave {
            name: "all".to_owned(),
            pods,
            max_parallel: None,
            timeout: None,
            max_grace_seconds: None,
            policy: String::new(),
        });
    }
    PlanAnswer::Plan(draft)
}

/// Why the node must not be marked.
fn alive(node: &Node) -> Option<String> {
    let name = &node.name;
    (!Node::may_be_off(&node.conditions)).then(|| {
        format!(
            "node {name} is Ready, so its machine is not off: pods that run there could write to volumes that other nodes \
             mount. Drain it without --node-is-off, or power it off and wait until it is NotReady"
        )
    })
}

/// Cancels a drain that has begun if an event shows that the node is alive. A process that continues the drain without
/// the flag knows it by the annotation.
pub(super) fn order(request: &Request, is_untouched: bool, event: &Event) -> Option<Event> {
    let Event::Node(Some(node)) = event else {
        return None;
    };
    let is_marked = node.annotations.get(Node::OUT_OF_SERVICE) == Some(&request.id);
    let is_meant = (request.settings.machine_is_off || is_marked) && request.intent == Intent::Drain;
    let is_alive = is_meant && !is_untouched && !Node::may_be_off(&node.conditions);
    is_alive.then(|| Event::Cancel {
        reason: format!("node {} is Ready again, so its machine is not off", node.name),
    })
}

/// What to report about a node that is Ready again and still has the taint of a drain that has ended; `None`: it is not
/// such a node.
pub(crate) fn still_tainted(node: &Node) -> Option<PolicyMessage> {
    let is_under_way = node.checkpoint.as_ref().is_some_and(Checkpoint::is_under_way);
    let is_ready = |it: &Condition| it.kind == "Ready" && it.status == "True";
    let is_left = node.is_out_of_service() && !is_under_way && node.conditions.iter().any(is_ready);
    is_left.then(|| {
        let name = &node.name;
        message(
            STILL_TAINTED,
            format!(
                "the node is Ready again and still has the taint {OUT_OF_SERVICE_TAINT}: scupper uncordon {name} removes it"
            ),
        )
    })
}

/// One step of a hook.
pub(super) struct Step {
    pub(super) cluster: Cluster,
    pub(super) node: Option<Node>,
    pub(super) drain: String,
    pub(super) phase: HookPhase,
    /// The drain ended before it was done, and its cordon stays.
    pub(super) held: bool,
}

impl Step {
    /// Takes the step. Returns its outcome, and a message if there is one.
    pub(super) async fn take(self) -> (StepOutcome, Option<PolicyMessage>) {
        let Some(node) = &self.node else {
            return (again("nothing is known of the node yet".to_owned()), None);
        };
        let done = match self.phase {
            HookPhase::BeforeDrain => self.mark(node).await,
            _ => self.unmark(node).await,
        };
        match done {
            Ok(said) => {
                if let Some(said) = &said {
                    emit(&self.cluster, &node.name, said).await;
                }
                (StepOutcome::Done, said)
            }
            Err(outcome) => (outcome, None),
        }
    }

    async fn mark(&self, node: &Node) -> Result<Option<PolicyMessage>, StepOutcome> {
        let mark = || {
            self.cluster
                .mark_out_of_service(&node.name, &node.uid, &self.drain)
        };
        let marked = match mark().await {
            // Controllers answer the cordon with a taint of their own at this very moment.
            Err(WriteError::Conflict { .. }) => mark().await,
            marked => marked,
        };
        match marked.map_err(failed)? {
            OutOfService::Marked => Ok(Some(message(
                TAINTED,
                format!(
                    "the node has the taint {OUT_OF_SERVICE_TAINT}: the controllers delete its pods and detach its volumes"
                ),
            ))),
            OutOfService::Found => Ok(Some(message(
                TAINTED,
                format!("the node already had the taint {OUT_OF_SERVICE_TAINT}"),
            ))),
            OutOfService::Uncordoned => Err(again(format!(
                "node {} is not cordoned; the taint waits for the cordon",
                node.name
            ))),
            OutOfService::Alive => Err(StepOutcome::Failed {
                message: alive(node).unwrap_or_else(|| format!("node {} is Ready", node.name)),
                retry_after: None,
            }),
        }
    }

    /// The taint stays with the cordon, unless the node is alive.
    async fn unmark(&self, node: &Node) -> Result<Option<PolicyMessage>, StepOutcome> {
        let is_off = Node::may_be_off(&node.conditions);
        if self.held && is_off {
            return Ok(None);
        }
        let own = is_off.then_some(self.drain.as_str());
        let removed = self.cluster.unmark_out_of_service(&node.name, own).await;
        let removed = removed.map_err(failed)?;
        Ok(removed.then(taint_removed))
    }
}

/// The message about a taint that is removed.
pub(crate) fn taint_removed() -> PolicyMessage {
    message(UNTAINTED, format!("the taint {OUT_OF_SERVICE_TAINT} is removed"))
}

/// Emits a message about the taint as an Event of the node. Nothing depends on it.
pub(crate) async fn emit(cluster: &Cluster, node: &str, said: &PolicyMessage) {
    let event = KubernetesEvent {
        node: node.to_owned(),
        severity: Severity::of(said.reason != UNTAINTED),
        reason: said.reason.clone(),
        action: "Drain".to_owned(),
        note: said.note.clone(),
        series: None,
    };
    if let Err(error) = cluster.emit(&event).await {
        tracing::debug!(%error, "the Event about the taint is not written");
    }
}

fn message(reason: &str, note: String) -> PolicyMessage {
    PolicyMessage {
        policy: POLICY.to_owned(),
        warning: false,
        reason: reason.to_owned(),
        note,
    }
}

/// The step retries after every error except a rejection for another reason than missing rights.
fn failed(error: WriteError) -> StepOutcome {
    let is_final = matches!(error, WriteError::Rejected { .. }) && !error.is_forbidden();
    StepOutcome::Failed {
        message: error.to_string(),
        retry_after: (!is_final).then_some(AGAIN),
    }
}

fn again(message: String) -> StepOutcome {
    StepOutcome::Failed {
        message,
        retry_after: Some(AGAIN),
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod tests;
