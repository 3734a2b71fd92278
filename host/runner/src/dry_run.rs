//! A drain that is begun, and stopped once it has a plan: before it changes anything. So what a command foretells takes the
//! path of a real drain.

use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use scupper_engine::{Answer, Budget, Command, Drain, Event, Notice, Outcome, Plan, Request, Task};
use scupper_forecast::NOTICE;
use scupper_policy::{DrainFacts, DrainInfo, Facts};

use crate::node_snapshot::NodeSnapshot;
use crate::policy_calls::{self, EngineDrainInfo};
use crate::pre_flight::{self, PreFlightCheck};
use crate::{notify, out_of_service};
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_policy_reload::Session;

/// A drain that has a plan, or has ended without one.
#[derive(Debug)]
pub struct DryRun {
    /// The drain, as it was then.
    pub drain: Drain,
    /// The plan, or how the drain would end at once.
    pub result: Result<Plan, Outcome>,
    /// The disruption budgets, if they were read by then.
    pub budgets: Option<Vec<Budget>>,
    /// What the planners have asked of the cluster.
    pub facts: Arc<Facts>,
}

/// There is no plan, and no end.
#[derive(Debug, thiserror::Error)]
#[error("no plan for node {node}: {message}")]
pub struct NoPlan {
    /// The node.
    pub node: String,
    /// Why.
    pub message: String,
}

/// Runs a drain of the watched node until it has a plan, or has ended without one.
///
/// # Errors
///
/// The watch has ended, or the engine has asked for anything else before it had a plan.
pub async fn dry_run(
    cluster: &Cluster,
    policies: &Session,
    clock: Clock,
    request: Request,
    watch: &mut (impl Stream<Item = Event> + Unpin),
) -> Result<DryRun, NoPlan> {
    let no_plan = |node: &str, message: String| NoPlan {
        node: node.to_owned(),
        message,
    };
    let request = notify::planned(pre_flight::planned(out_of_service::planned(request, None)));
    let mut drain = Drain::new(clock.now(), request);
    let (mut budgets, mut facts) = (None, DrainFacts::default());
    loop {
        while let Some(notice) = drain.poll_notice() {
            let result = match notice {
                Notice::Planned(plan) => Ok(plan),
                Notice::Finished { outcome, .. } => Err(outcome),
                // A drain would wait and try again; a plan shows why.
                Notice::PlannerWaiting { policy, message, .. } => {
                    Err(Outcome::PolicyFailed { policy, message })
                }
                _ => continue,
            };
            let facts = facts.of_plan(drain.chains_begun(), clock.now());
            return Ok(DryRun {
                drain,
                result,
                budgets,
                facts,
            });
        }
        let event = match drain.poll_command() {
            Some(command) => match answer(cluster, policies, clock, &drain, &mut facts, command).await {
                Ok(event) => event,
                Err(message) => return Err(no_plan(&drain.request().node, message)),
            },
            None => match watch.next().await {
                Some(event) => event,
                None => return Err(no_plan(&drain.request().node, "the watch ended".to_owned())),
            },
        };
        if let Event::Budgets(all) = &event {
            budgets = Some(all.clone());
        }
        drain.handle_event(clock.now(), event);
    }
}

/// What a planner says, of a policy or of the host's own.
async fn answer(
    cluster: &Cluster,
    policies: &Session,
    clock: Clock,
    drain: &Drain,
    facts: &mut DrainFacts,
    command: Command,
) -> Result<Event, String> {
    let (policy, draft) = match command.task {
        Task::Plan { policy, draft } => (policy, draft),
        // The plan comes before any other command, so a correct engine never gets here.
        other => {
            return Err(format!(
                "the engine asked for {} before it had a plan",
                other.name()
            ));
        }
    };
    let now = clock.now();
    let answer = match policy.as_str() {
        pre_flight::PLANNER => {
            let known = PreFlightCheck::of(drain, now);
            known.answer_at_once(cluster, draft).await
        }
        out_of_service::POLICY => out_of_service::plan_at_once(cluster, &drain.request().node, draft).await,
        NOTICE => notify::plan(drain, now, draft),
        _ => {
            let shown = NodeSnapshot::for_planner(drain);
            let asked = facts.of_plan(drain.chains_begun(), now);
            let info = DrainInfo {
                facts: Some(&asked),
                ..policy_calls::info(drain.request(), now, EngineDrainInfo::of(drain), now)
            };
            let settings = &drain.request().settings;
            policy_calls::plan(policies, info, &shown, settings, (&policy, &draft)).await
        }
    };
    Ok(Event::Answer(command.id, Answer::Plan(answer)))
}
