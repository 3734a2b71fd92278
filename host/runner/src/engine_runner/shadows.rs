//! Shadow policies: plans that are made beside a drain, and compared with its plan.
//!
//! A shadow costs the drain nothing: it plans in a task of its own once the drain has its plan, once in a drain, by the
//! facts that the chain has asked for, and no answer of it reaches the engine of the drain. It must not know what policies
//! are, or who reports a difference.

use std::sync::Arc;

use scupper_engine::{
    Answer, Blocker, Budget, Command, Decision, Drain, Event, Node, Notice, Outcome, Plan, PlanAnswer, Pod,
    PolicyInfo, Request, Task, Time, Verdict, draft,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::EngineRunner;
use crate::node_snapshot::NodeSnapshot;
use crate::policy_calls::{self, EngineDrainInfo};
use crate::{out_of_service, pre_flight};
use scupper_forecast::NOTICE;
use scupper_policy::{DrainInfo, Facts, PlanCall};
use scupper_policy_reload::{Session, Shadow};
use scupper_recording::{ShadowPlan, ShadowResult, differences};

/// What the first plan of a drain was made of.
pub struct PlanInputs {
    /// The request, with the planners of the host.
    pub request: Request,
    /// The node.
    pub node: Node,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// The disruption budgets.
    pub budgets: Vec<Budget>,
    /// When the drain began.
    pub started: Time,
    /// When it is planned.
    pub now: Time,
    /// What its chain has asked for.
    pub facts: Arc<Facts>,
}

/// The shadows of a drain that plan, and what has come of it.
#[derive(Default)]
pub(super) struct ShadowPlans {
    /// Ends with this value.
    task: JoinSet<()>,
    planned: Option<mpsc::UnboundedReceiver<ShadowPlan>>,
    /// Those that have not planned yet, without a result.
    waiting: Vec<ShadowPlan>,
    made: Vec<ShadowPlan>,
}

impl ShadowPlans {
    /// The next plan; `None`: none will come. Waits for ever if no shadow plans.
    pub(super) async fn next(&mut self) -> Option<ShadowPlan> {
        match &mut self.planned {
            Some(planned) => planned.recv().await,
            None => std::future::pending().await,
        }
    }

    /// All plans, those that are missing with this result. Nothing plans any more.
    fn end(&mut self, missing: &ShadowResult) -> Vec<ShadowPlan> {
        let ended = std::mem::take(self);
        let missing = ended.waiting.into_iter().map(|plan| ShadowPlan {
            result: missing.clone(),
            ..plan
        });
        ended.made.into_iter().chain(missing).collect()
    }
}

impl EngineRunner {
    /// Begins to plan with the shadows, by what the first plan was made of. A drain that another process has begun has
    /// been planned there.
    pub(super) fn begin_shadows(&mut self, now: Time) {
        let Some(node) = self.drain.node() else { return };
        let shadows = shadows_for(&self.policies, node);
        let waiting: Vec<_> = shadows.map(|shadow| unmade(shadow, 0)).collect();
        if waiting.is_empty() {
            return;
        }
        let inputs = PlanInputs {
            request: self.drain.request().clone(),
            node: node.clone(),
            pods: self.drain.pods().cloned().collect(),
            budgets: self.drain.budgets().cloned().collect(),
            started: self.reporter.started(),
            now,
            facts: self.facts.of_plan(self.drain.chains_begun(), now),
        };
        let (policies, (made, planned)) = (Arc::clone(&self.policies), mpsc::unbounded_channel());
        let log = self.drain.facts().clone();
        let planning = async move {
            let planned = |plan: ShadowPlan| {
                // So that its plan can be made again.
                log.learned(&plan.policy, || inputs.facts.objects());
                // Nobody waits any more where the drain has ended.
                made.send(plan).unwrap_or_default();
            };
            plan_shadows(&policies, &inputs, planned).await;
        };
        self.shadows.task.spawn(planning.in_current_span());
        (self.shadows.planned, self.shadows.waiting) = (Some(planned), waiting);
    }

    /// A shadow has planned; `None`: its task has ended in the middle.
    pub(super) fn shadow_planned(&mut self, plan: Option<ShadowPlan>) {
        let Some(plan) = plan else {
            let bug = ShadowResult::Failed("planning broke off, which is a bug in Scupper".to_owned());
            return self.report_shadows(&bug);
        };
        self.shadows
            .waiting
            .retain(|waiting| waiting.policy != plan.policy);
        self.shadows.made.push(plan);
        if self.shadows.waiting.is_empty() {
            self.report_shadows(&ShadowResult::Unfinished);
        }
    }

    /// The drain has ended, so that no shadow plans any more.
    pub(super) fn end_shadows(&mut self) {
        if self.shadows.planned.is_some() {
            self.report_shadows(&ShadowResult::Unfinished);
        }
    }

    fn report_shadows(&mut self, missing: &ShadowResult) {
        let plans = self.shadows.end(missing);
        let now = self.deps.clock.now();
        self.reporter.on_shadows(now, self.drain.request(), &plans);
        self.drain.shadows(plans);
    }
}

/// Plans with the active chain again, and with each shadow in it, one after another. Nothing follows from the answers. Once
/// a fact could not be read, no more shadows are tried: none would get an answer.
pub async fn plan_shadows(session: &Session, inputs: &PlanInputs, mut made: impl FnMut(ShadowPlan)) {
    let shadows: Vec<_> = shadows_for(session, &inputs.node).collect();
    if shadows.is_empty() {
        return;
    }
    // Not the plan that was agreed on: that one has what the host's planners add, and a moment of its own.
    let active = play(session, ("", &session.infos()), inputs).await;
    let mut unread: Option<String> = None;
    for shadow in shadows {
        let leaving = match &active {
            Played::Plan(plan) => plan.leaving().count(),
            Played::Refused(_) | Played::Failed(_) => 0,
        };
        let result = match (&active, &unread) {
            (Played::Plan(_), Some(cause)) => ShadowResult::Failed(cause.clone()),
            (Played::Plan(active), None) => {
                match play(session, (shadow.name(), shadow.chain()), inputs).await {
                    Played::Plan(plan) => compared(active, &plan, &inputs.pods),
                    Played::Refused(message) => ShadowResult::Refuses(message),
                    Played::Failed(message) => ShadowResult::Failed(message),
                }
            }
            (Played::Refused(message) | Played::Failed(message), _) => {
                ShadowResult::Failed(format!("the active policies did not plan again: {message}"))
            }
        };
        if unread.is_none() {
            let trouble = inputs.facts.trouble();
            unread = trouble.map(|trouble| {
                format!(
                    "it was not tried after shadow {}: a fact could not be read: {trouble}",
                    shadow.name()
                )
            });
        }
        made(ShadowPlan {
            result,
            ..unmade(shadow, leaving)
        });
    }
}

/// The shadows for which the node has a plan. One that does not take part may still take another policy away.
fn shadows_for<'a>(session: &'a Session, node: &'a Node) -> impl Iterator<Item = &'a Shadow> {
    let shadows = session.shadows().iter();
    shadows.filter(|shadow| shadow.instead_of().is_some() || shadow.info().is_for(node))
}

fn unmade(shadow: &Shadow, leaving: usize) -> ShadowPlan {
    ShadowPlan {
        policy: shadow.name().to_owned(),
        digest: shadow.digest().to_owned(),
        instead_of: shadow.instead_of().map(str::to_owned),
        leaving,
        result: ShadowResult::Unfinished,
    }
}

fn compared(active: &Plan, shadow: &Plan, pods: &[Pod]) -> ShadowResult {
    let different = differences(active, shadow, pods);
    match different.is_empty() {
        true => ShadowResult::Agrees,
        false => ShadowResult::Differs(different),
    }
}

/// What a chain has come to.
enum Played {
    Plan(Plan),
    /// A planner refuses the drain.
    Refused(String),
    Failed(String),
}

/// Plans the drain with the chain of this shadow, in a separate engine with the inputs of the drain's engine.
async fn play(session: &Session, (shadow, chain): (&str, &[PolicyInfo]), inputs: &PlanInputs) -> Played {
    let mut drain = Drain::new(inputs.now, with_chain(session, chain, inputs));
    let known = [
        Event::Node(Some(inputs.node.clone())),
        Event::Pods(inputs.pods.clone()),
        Event::Budgets(inputs.budgets.clone()),
    ];
    for event in known {
        drain.handle_event(inputs.now, event);
    }
    let mut last = draft(&inputs.pods, &inputs.request.settings, inputs.now);
    loop {
        if let Some(played) = noticed(&mut drain, shadow, &last) {
            return played;
        }
        let Some(Command { id, task }) = drain.poll_command() else {
            return Played::Failed("its chain came to no end, which is a bug in Scupper".to_owned());
        };
        let Task::Plan { policy, draft } = task else {
            return Played::Failed(format!(
                "the engine asked for {} before it had a plan",
                task.name()
            ));
        };
        let answer = answer(session, &drain, inputs, (&policy, draft)).await;
        match &answer {
            PlanAnswer::Plan(plan) => last = plan.clone(),
            PlanAnswer::Refused { message } => return Played::Refused(said_by(shadow, &policy, message)),
            PlanAnswer::Failed { .. } => {}
        }
        drain.handle_event(inputs.now, Event::Answer(id, Answer::Plan(answer)));
    }
}

/// What the chain has come to, once it has. `last`: the draft so far.
fn noticed(drain: &mut Drain, shadow: &str, last: &Plan) -> Option<Played> {
    while let Some(notice) = drain.poll_notice() {
        match notice {
            Notice::Planned(plan) => return Some(Played::Plan(plan)),
            Notice::PlannerWaiting { policy, message, .. }
            | Notice::Finished {
                outcome: Outcome::PolicyFailed { policy, message },
                ..
            } => return Some(Played::Failed(said_by(shadow, &policy, &message))),
            Notice::Finished {
                outcome: Outcome::Blocked { pods },
                ..
            } => return Some(Played::Plan(blocked(last, pods))),
            Notice::Finished { outcome, .. } => return Some(Played::Failed(outcome.to_string())),
            _ => {}
        }
    }
    None
}

/// The shadow is named before what it says.
fn said_by(shadow: &str, policy: &str, message: &str) -> String {
    match policy == shadow {
        true => message.to_owned(),
        false => format!("{policy}: {message}"),
    }
}

/// The request with another chain before the planners of the host.
fn with_chain(session: &Session, chain: &[PolicyInfo], inputs: &PlanInputs) -> Request {
    let mut request = inputs.request.clone();
    let infos = session.infos();
    request
        .policies
        .retain(|policy| infos.iter().all(|info| info.name != policy.name));
    request.policies.splice(..0, chain.iter().cloned());
    request
}

/// Answers a planner. Those of the host ask the API server nothing here.
async fn answer(
    session: &Session,
    drain: &Drain,
    inputs: &PlanInputs,
    (policy, draft): (&str, Plan),
) -> PlanAnswer {
    if policy == pre_flight::PLANNER || policy == NOTICE {
        return PlanAnswer::Plan(draft);
    }
    if policy == out_of_service::POLICY {
        return PlanAnswer::Plan(out_of_service::with_deletions(draft));
    }
    let shown = NodeSnapshot::for_planner(drain);
    let pods = shown.pods_of(&draft);
    let state = EngineDrainInfo::of(drain);
    let call = PlanCall {
        policy,
        drain: DrainInfo {
            facts: Some(&inputs.facts),
            ..policy_calls::info(&inputs.request, inputs.started, state, inputs.now)
        },
        node: &inputs.node,
        pods: &pods,
        draft: &draft,
    };
    let answer = session.plan_beside(call).await;
    // What a shadow answers is reported as it is.
    match session.shadows().iter().any(|shadow| shadow.name() == policy) {
        true => answer,
        false => {
            let settings = &inputs.request.settings;
            let unsound = |message| session.unsound_beside(policy, message, &draft);
            policy_calls::checked(answer, &draft, (&pods, settings), unsound)
        }
    }
}

/// The plan of a drain that may not begin. Pods that may not leave are a difference like any other.
fn blocked(last: &Plan, blockers: Vec<Blocker>) -> Plan {
    let mut plan = last.clone();
    for blocker in blockers {
        let uid = &blocker.pod.uid;
        for wave in &mut plan.waves {
            wave.pods.retain(|pod| pod != uid);
        }
        plan.decisions.retain(|decision| decision.pod != *uid);
        plan.decisions.push(Decision {
            pod: blocker.pod.uid,
            verdict: Verdict::Refuse,
            reason: blocker.reason,
            policy: blocker.policy,
        });
    }
    plan
}
