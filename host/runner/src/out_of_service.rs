//! A drain of a machine that is off (`--node-is-off`): a planner and hooks of the host, behind all policies.
//!
//! The planner makes one wave of deletions: budgets and waves mean nothing if no pod runs. The hook taints the node
//! after the policies' `before-drain`, so that the controllers remove the pods that no kubelet ends. A cancel removes
//! the taint again, at once and whatever the policies' hooks do. All of it holds only as long as the node's kubelet is
//! silent: a sign of life refuses the plan and the taint, and cancels the drain.

mod removal;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scupper_engine::{
    Checkpoint, Event, HookPhase, HookStep, Intent, Node, Plan, PlanAnswer, PolicyInfo, Request, StepOutcome,
    Verdict, Wave,
};
use tokio::sync::OwnedMutexGuard;
use tokio::time::sleep;

pub(crate) use self::removal::TaintRemoval;
use super::pre_flight::RefusedSince;
use scupper_cluster::{
    Cluster, KUBELET_LEASE_NAMESPACE, KubeletSilence, KubeletState, KubernetesEvent, OUT_OF_SERVICE_TAINT,
    OutOfService, ReadError, Severity, SignOfLife, WriteError,
};
use scupper_report::PolicyMessage;

/// Its name in plans and hooks. No policy can have it.
pub const POLICY: &str = "out of service";

const REASON: &str = "the machine is off: deleted without asking its disruption budgets";
/// The reasons of the Events about the taint.
const TAINTED: &str = "OutOfService";
const UNTAINTED: &str = "BackInService";
const STILL_TAINTED: &str = "StillOutOfService";

/// How long the hook waits before it repeats a failed write, and the planner before it repeats a read.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a drain looks at the kubelet's Lease, which a kubelet that is alive renews as often.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

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

/// What this process has seen of the node's kubelet. Its Lease must not change from one look to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct KubeletLooks {
    silence: Arc<Mutex<Option<KubeletSilence>>>,
    refused_since: RefusedSince,
}

impl KubeletLooks {
    fn last(&self) -> Option<KubeletSilence> {
        let silence = self.silence.lock();
        silence.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks now: a sign of life, or none.
    pub(crate) async fn look(&self, cluster: &Cluster, node: &str) -> Result<Option<SignOfLife>, ReadError> {
        match cluster.kubelet(node, self.last().as_ref()).await? {
            KubeletState::Alive(sign) => Ok(Some(sign)),
            KubeletState::Silent(silence) => {
                let mut last = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
                last.get_or_insert(silence);
                Ok(None)
            }
        }
    }
}

/// Answers for the planner without waiting for rights that are missing.
pub async fn plan_at_once(cluster: &Cluster, node: &str, draft: Plan) -> PlanAnswer {
    plan(cluster, node, draft, &KubeletLooks::default(), Duration::ZERO).await
}

/// Answers for the planner: if the kubelet is silent, every pod that is to leave is deleted, all in one wave. A read that
/// the API server refuses is tried again within the limit. Then the drain is refused: nothing shows that the kubelet is
/// silent.
pub(crate) async fn plan(
    cluster: &Cluster,
    node: &str,
    draft: Plan,
    looks: &KubeletLooks,
    limit: Duration,
) -> PlanAnswer {
    let error = match looks.look(cluster, node).await {
        Ok(sign) => {
            looks.refused_since.end();
            return match sign {
                Some(sign) => PlanAnswer::Refused {
                    message: alive(node, &sign),
                },
                None => PlanAnswer::Plan(with_deletions(draft)),
            };
        }
        Err(error) => error,
    };
    let message = error.to_string();
    if looks.refused_since.may_pass(&error, limit) {
        let retry_after = Some(AGAIN);
        return PlanAnswer::Failed { message, retry_after };
    }
    PlanAnswer::Refused {
        message: format!("whether the kubelet of node {node} is silent cannot be told: {message}"),
    }
}

pub(crate) fn with_deletions(mut draft: Plan) -> Plan {
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
    draft
}

/// Why the node must not be marked, and what to do.
pub fn alive(node: &str, sign: &SignOfLife) -> String {
    format!(
        "{}: pods that run there could write to volumes that other nodes mount. Drain it without --node-is-off, or power it \
         off and wait until its condition Ready is Unknown and its Lease in {KUBELET_LEASE_NAMESPACE} has expired",
        sign_text(node, sign)
    )
}

fn sign_text(node: &str, sign: &SignOfLife) -> String {
    match sign {
        SignOfLife::NoCondition => format!("node {node} {sign}, so nothing shows that its kubelet is silent"),
        SignOfLife::Reported { status, .. } if status == "True" => {
            format!("node {node} is Ready, so its machine is not off")
        }
        sign => format!("the kubelet of node {node} is alive: it {sign}"),
    }
}

/// Cancels a drain that has begun if an event shows that the node is alive. A process that continues the drain without
/// the flag knows it by the annotation.
pub(crate) fn order(request: &Request, is_untouched: bool, event: &Event) -> Option<Event> {
    let Event::Node(Some(node)) = event else {
        return None;
    };
    let is_marked = node.annotations.get(Node::OUT_OF_SERVICE) == Some(&request.id);
    let is_meant = (request.settings.machine_is_off || is_marked) && request.intent == Intent::Drain;
    let is_alive = is_meant && !is_untouched && !Node::may_be_off(&node.conditions);
    is_alive.then(|| Event::Cancel {
        reason: match ready(node) {
            Some("False") => format!(
                "the kubelet of node {} is alive: it reports Ready=False",
                node.name
            ),
            _ => format!("node {} is Ready again, so its machine is not off", node.name),
        },
    })
}

/// The order that cancels a drain once the node's kubelet gives a sign of life that the node's condition does not show, such
/// as a renewed Lease; pending for drains without the planner or the hooks.
pub(crate) fn sign_of_life(
    request: &Request,
    cluster: &Cluster,
    looks: &KubeletLooks,
) -> impl Future<Output = Event> + Send + use<> {
    let is_meant = request.policies.iter().any(|policy| policy.name == POLICY);
    let (node, cluster, looks) = (request.node.clone(), cluster.clone(), looks.clone());
    async move {
        if !is_meant {
            std::future::pending::<()>().await;
        }
        // The planner looks first.
        let mut pause = LOOK_AGAIN;
        loop {
            sleep(pause).await;
            pause = match looks.look(&cluster, &node).await {
                Ok(Some(sign)) => {
                    let reason = sign_text(&node, &sign);
                    return Event::Cancel { reason };
                }
                Ok(None) => LOOK_AGAIN,
                Err(error) => {
                    tracing::debug!(node, %error, "whether the kubelet is silent cannot be told yet");
                    AGAIN
                }
            };
        }
    }
}

fn ready(node: &Node) -> Option<&str> {
    let mut conditions = node.conditions.iter();
    let ready = conditions.find(|condition| condition.kind == "Ready")?;
    Some(&ready.status)
}

/// What to report about a node that is Ready again and still has the taint of a drain that has ended; `None`: it is not
/// such a node.
pub fn still_tainted(node: &Node) -> Option<PolicyMessage> {
    let is_under_way = node.checkpoint.as_ref().is_some_and(Checkpoint::is_under_way);
    let is_left = node.is_out_of_service() && !is_under_way && ready(node) == Some("True");
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

/// A step of the hook that waits until the taint is removed.
pub(crate) fn removes(step: &HookStep) -> bool {
    step.policy == POLICY && step.phase == HookPhase::OnCancel
}

/// The step of the hook that sets the taint.
pub(crate) struct Step {
    pub(crate) cluster: Cluster,
    pub(crate) node: Option<Node>,
    pub(crate) looks: KubeletLooks,
    pub(crate) drain: String,
    /// Of [`TaintRemoval::setting`].
    pub(crate) setting: Option<OwnedMutexGuard<()>>,
}

impl Step {
    /// Takes the step. Returns its outcome, and a message if there is one.
    pub(crate) async fn take(self) -> (StepOutcome, Option<PolicyMessage>) {
        let _setting = &self.setting;
        let Some(node) = &self.node else {
            return (again("nothing is known of the node yet".to_owned()), None);
        };
        match self.mark(node).await {
            Ok(said) => {
                emit(&self.cluster, &node.name, &said).await;
                (StepOutcome::Done, Some(said))
            }
            Err(outcome) => (outcome, None),
        }
    }

    async fn mark(&self, node: &Node) -> Result<PolicyMessage, StepOutcome> {
        let before = self.looks.last();
        let mark = || {
            self.cluster
                .mark_out_of_service(&node.name, &node.uid, &self.drain, before.as_ref())
        };
        let marked = match mark().await {
            // Controllers answer the cordon with a taint of their own at this very moment.
            Err(WriteError::Conflict { .. }) => mark().await,
            marked => marked,
        };
        match marked.map_err(failed)? {
            OutOfService::Marked => Ok(message(
                TAINTED,
                format!(
                    "the node has the taint {OUT_OF_SERVICE_TAINT}: the controllers delete its pods and detach its volumes"
                ),
            )),
            OutOfService::Found => Ok(message(
                TAINTED,
                format!("the node already had the taint {OUT_OF_SERVICE_TAINT}"),
            )),
            OutOfService::Uncordoned => Err(again(format!(
                "node {} is not cordoned; the taint waits for the cordon",
                node.name
            ))),
            OutOfService::Alive(sign) => Err(StepOutcome::Failed {
                message: alive(&node.name, &sign),
                retry_after: None,
            }),
        }
    }
}

/// The message about a taint that is removed.
pub fn taint_removed() -> PolicyMessage {
    message(UNTAINTED, format!("the taint {OUT_OF_SERVICE_TAINT} is removed"))
}

/// The message about a taint that could not be removed.
fn still_there(node: &str, why: &str) -> PolicyMessage {
    message(
        STILL_TAINTED,
        format!("the taint {OUT_OF_SERVICE_TAINT} is still there: {why}; scupper uncordon {node} removes it"),
    )
}

/// Emits a message about the taint as an Event of the node. Nothing depends on it.
pub async fn emit(cluster: &Cluster, node: &str, said: &PolicyMessage) {
    let severity = Severity::of(said.reason != UNTAINTED);
    let event = KubernetesEvent::of_node(node, severity, &said.reason, &said.note);
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
    StepOutcome::Failed {
        message: error.to_string(),
        retry_after: (!error.is_final()).then_some(AGAIN),
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
