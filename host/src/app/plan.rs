//! What a drain would do, found out by beginning one and stopping it before it changes anything: a dry run takes the
//! very path of a real one.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use scupper_engine::{Answer, Drain, Event, Intent, Notice, Outcome, Plan, Pod, Request, Settings, Task};

use super::calls;
use super::view::View;
use super::{AppError, PoliciesOptions, policies};
use crate::clock::Clock;
use crate::cluster::{Cluster, ConnectOptions};
use crate::policy::Session;

/// What to plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// As `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The node.
    pub node: String,
    /// How pods are chosen.
    pub settings: Settings,
    /// What to load.
    pub policies: PoliciesOptions,
    /// How long one request may take.
    pub eviction_timeout: Duration,
    /// What time it is.
    pub clock: Clock,
    /// The program that compiles policies; `None`: this one.
    pub compiler: Option<PathBuf>,
}

/// A plan, or why there is none, with the pods that it is about.
#[derive(Debug)]
pub struct Planned {
    /// The pods on the node.
    pub pods: Vec<Pod>,
    /// The plan, or how the drain would end at once.
    pub result: Result<Plan, Outcome>,
}

/// Plans a drain of a node and changes nothing.
pub async fn plan(options: PlanOptions) -> Result<Planned, AppError> {
    let connect = ConnectOptions {
        kubeconfig: options.kubeconfig.clone(),
        eviction_timeout: options.eviction_timeout,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(AppError::Connect)?;
    let unseen = |source| AppError::Node {
        node: options.node.clone(),
        source,
    };
    cluster.preflight(&options.node).await.map_err(unseen)?;
    let loaded = policies::load(
        &options.policies,
        options.compiler.clone(),
        options.clock,
        &cluster,
    )
    .await?;
    let session = Session::fixed(loaded.policies);
    let request = Request {
        id: "plan".to_owned(),
        name: "plan".to_owned(),
        trigger: "command".to_owned(),
        intent: Intent::Drain,
        node: options.node,
        deadline: None,
        settings: options.settings,
        policies: session.infos(),
    };
    dry_run(&cluster, &session, options.clock, request).await
}

/// Runs a drain until it has a plan, or has ended without one.
async fn dry_run(
    cluster: &Cluster,
    policies: &Session,
    clock: Clock,
    request: Request,
) -> Result<Planned, AppError> {
    let node = request.node.clone();
    let mut drain = Drain::new(clock.now(), request);
    let mut view = View::default();
    let watch = cluster.watch(&node);
    futures::pin_mut!(watch);
    loop {
        while let Some(notice) = drain.poll_notice() {
            let result = match notice {
                Notice::Planned(plan) => Ok(plan),
                Notice::Finished { outcome, .. } => Err(outcome),
                // A drain would wait and ask again; whoever asks what it would do is told why.
                Notice::PlannerWaiting { policy, message, .. } => {
                    Err(Outcome::PolicyFailed { policy, message })
                }
                _ => continue,
            };
            return Ok(Planned {
                pods: view.pods().cloned().collect(),
                result,
            });
        }
        let event = match drain.poll_command() {
            Some(command) => match &command.task {
                Task::Plan { policy, draft } => {
                    let now = clock.now();
                    let info = calls::info(drain.request(), now, now);
                    let answer =
                        calls::plan(policies, info, &view, &drain.request().settings, (policy, draft)).await;
                    Event::Answer(command.id, Answer::Plan(answer))
                }
                // The plan is told before anything else is asked for, so this is never reached with a sound engine.
                other => {
                    let message = format!("the engine asked for {} before it had a plan", other.name());
                    return Err(AppError::NoPlan { node, message });
                }
            },
            None => match watch.next().await {
                Some(event) => event,
                None => {
                    return Err(AppError::NoPlan {
                        node,
                        message: "the watch ended".to_owned(),
                    });
                }
            },
        };
        view.apply(&event);
        drain.handle_event(clock.now(), event);
    }
}
