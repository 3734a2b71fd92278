//! What a drain would do, and what stands in its way.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use scupper_engine::{
    Budget, Drain, Event, EvictAnswer, Filters, ForceAtDeadline, Node, Outcome, Plan, Pod, PodRef, Request,
    SelectorIndex, Settings, Time, Trigger,
};
use scupper_pre_flight::{Certainty, Finding};
use tokio::time::timeout;

use crate::{CommandError, Progress, REFUSAL_PATIENCE};
use planner::plans;
use scupper_cluster::{Cluster, ClusterRoom, ConnectOptions, Connection, ReadError, Recorder};
use scupper_common::clock::Clock;
use scupper_config::DrainSettings;
use scupper_driver::{DriverError, NodeOccupancy, OccupancyOverrides, PoliciesOptions};
use scupper_policy::{EnvironmentFindings, Facts};
use scupper_policy_reload::Session;
use scupper_recording::ShadowPlan;
use scupper_report::not_ready;
use scupper_runner::DryRun;
use scupper_runner::pre_flight::{self, PreFlightCheck};
use scupper_runner::shadows::{PlanInputs, plan_shadows};
use scupper_saved_cluster::SavedCluster;

mod planner;
mod target;

pub use target::PlannedTrigger;
pub use target::{DrainRequestToPlan, PlanTarget};

/// What to plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The cluster in its place.
    pub saved: Option<SavedCluster>,
    /// The drains.
    pub target: PlanTarget,
    /// The settings of the drains.
    pub settings: DrainSettings,
    /// What a drain by command hands over where a driver offers to do it; `None`: no driver is asked.
    pub handed_over: Option<HandedOver>,
    /// They are the driver's.
    pub as_driver: bool,
    /// What to load.
    pub policies: PoliciesOptions,
    /// Also tell what stands in the way of the plans, and what the shadows of the configuration would change.
    pub is_examined: bool,
    /// Ask the API server for every eviction, without carrying it out.
    pub ask_server: bool,
    /// What time it is.
    pub clock: Clock,
    /// How many are planned.
    pub progress: Progress,
    /// Keeps what is read.
    pub recorder: Option<Recorder>,
    /// The program that compiles policies; `None`: this one.
    pub compiler: Option<PathBuf>,
}

/// A drain that a command would hand over.
#[derive(Clone, Debug)]
pub struct HandedOver {
    /// To this driver.
    pub driver: String,
    /// The settings that it would have there. Those that no request carries are the driver's defaults.
    pub settings: Settings,
}

/// A plan, or why there is none, with the pods that it is about.
#[derive(Debug)]
pub struct Planned {
    /// The node.
    pub node: String,
    /// Who asks for it.
    pub asked_by: PlannedTrigger,
    /// When it was made.
    pub at: Time,
    /// When the drain would have to end; `None`: it has no deadline.
    pub deadline: Option<Time>,
    /// The pods on the node.
    pub pods: Vec<Pod>,
    /// The plan, or how the drain would end at once.
    pub result: Result<Plan, Outcome>,
    /// What else the drain would do.
    pub settings: Settings,
    /// The drain that it would continue, because the process of that one was on the machine that is off.
    pub continues: Option<String>,
    /// The disruption budgets that there are; `None`: they are not known.
    pub budgets: Option<Vec<Budget>>,
    /// What stands in the way of the plan.
    pub findings: Vec<Finding>,
    /// What its policies find wrong with what they depend on.
    pub environment: Vec<EnvironmentFindings>,
    /// The node is not ready, and why.
    pub not_ready: Option<String>,
    /// What the API server would say to each eviction just now, each by itself; `None`: it was not asked.
    pub answers: Option<Vec<(PodRef, EvictAnswer)>>,
    /// What the shadows of the configuration would change.
    pub shadows: Vec<ShadowPlan>,
    /// Where flags are missing: these, and what a drain with them would do.
    pub with_flags: Option<(Vec<&'static str>, Box<Self>)>,
    /// What was asked of the engine, and the node as it saw it; `None`: no cluster was read.
    pub drain: Option<(Request, Node)>,
}

impl Planned {
    /// A pod that has to leave certainly cannot.
    pub fn cannot_end(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.certainty == Certainty::Certain)
    }

    /// What the drain deletes shortly before its deadline; `None`: nothing.
    pub fn force(&self) -> Option<&ForceAtDeadline> {
        self.settings
            .at_deadline
            .as_ref()
            .filter(|_| self.deadline.is_some())
    }

    /// The flags that are missing, or for a drain with the driver's settings the fields of its configuration, and the
    /// settings with them. A DrainRequest has no flags.
    fn missing_flags(&self) -> Option<(Vec<&'static str>, Filters)> {
        let Err(Outcome::Blocked { pods }) = &self.result else {
            return None;
        };
        if self.asked_by.trigger == Trigger::DrainRequest {
            return None;
        }
        let mut filters = self.settings.filters.clone();
        let mut flags = Vec::new();
        for (flag, field, set) in [
            (
                "--ignore-daemonsets",
                "drain.ignore-daemonsets",
                &mut filters.ignore_daemonsets,
            ),
            (
                "--delete-emptydir-data",
                "drain.delete-emptydir-data",
                &mut filters.delete_emptydir_data,
            ),
            ("--force", "drain.force", &mut filters.force),
        ] {
            if !*set && pods.iter().any(|blocker| blocker.reason.contains(flag)) {
                *set = true;
                flags.push(if self.asked_by.is_as_driver { field } else { flag });
            }
        }
        (!flags.is_empty()).then_some((flags, filters))
    }
}

/// Plans drains of nodes, each by itself, and changes nothing.
pub async fn plan(options: PlanOptions) -> Result<Vec<Planned>, CommandError> {
    let cluster = connect(&options).await?;
    plans(&cluster, options).await
}

/// The same, with all nodes and pods of the cluster, or why these cannot be read.
pub async fn plan_with_room(
    options: PlanOptions,
) -> Result<(Vec<Planned>, Result<ClusterRoom, ReadError>), CommandError> {
    let cluster = connect(&options).await?;
    let plans = plans(&cluster, options).await?;
    let drained = plans.iter().filter(|planned| planned.result.is_ok());
    let drained = drained.map(|planned| planned.node.clone()).collect();
    let room = cluster.room(&drained).await;
    Ok((plans, room))
}

async fn connect(options: &PlanOptions) -> Result<Cluster, CommandError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        eviction_timeout: options.settings.eviction_timeout,
        page_size: options.settings.page_size,
        refusal_patience: REFUSAL_PATIENCE,
        recorder: options.recorder.clone(),
        ..ConnectOptions::default()
    };
    if let Some(saved) = &options.saved {
        return Ok(saved.clone().handle(connect));
    }
    let cluster = Cluster::connect(&connect).await;
    Ok(cluster.map_err(DriverError::Connect)?)
}

/// Plans the drain of a node by command, with policies that are loaded already.
pub(super) async fn plan_of_node(
    cluster: &Cluster,
    session: &Session,
    node: &str,
    settings: &Settings,
) -> Result<Planned, CommandError> {
    let request = Request {
        node: node.to_owned(),
        policies: session.infos(),
        ..target::by_command(settings)
    };
    dry_run(
        cluster,
        (session, false),
        Clock::System,
        request,
        &PlannedTrigger::default(),
    )
    .await
}

/// Budgets come by a watch of their own, which may be later than the plan. Without them there is a plan all the same.
const BUDGETS_WITHIN: Duration = Duration::from_secs(10);

/// Runs a drain until it has a plan, or has ended without one. `is_examined`: as in [`PlanOptions`].
async fn dry_run(
    cluster: &Cluster,
    (policies, is_examined): (&Session, bool),
    clock: Clock,
    request: Request,
    asked_by: &PlannedTrigger,
) -> Result<Planned, CommandError> {
    let node = request.node.clone();
    let watch = cluster.watch(&node);
    futures::pin_mut!(watch);
    let DryRun {
        drain,
        result,
        budgets,
        facts,
    } = scupper_runner::dry_run(cluster, policies, clock, request, &mut watch).await?;
    let budgets = match budgets {
        None => budgets_of(&mut watch).await,
        budgets => budgets,
    };
    let budgets = budgets.filter(|_| !cluster.may_not_list_budgets());
    let findings = match &result {
        Ok(plan) if is_examined => examine(cluster, &drain, clock.now(), plan, budgets.as_deref()).await,
        _ => Vec::new(),
    };
    // Those of other pods would be kept for each node.
    let budgets = budgets.map(|budgets| of_pods(budgets, &drain));
    let shadows = match &result {
        Ok(_) if is_examined => shadows_of(policies, &drain, clock.now(), (facts, budgets.as_deref())).await,
        _ => Vec::new(),
    };
    Ok(Planned {
        node,
        asked_by: asked_by.clone(),
        at: clock.now(),
        deadline: drain.request().deadline,
        pods: drain.pods().cloned().collect(),
        result,
        settings: drain.request().settings.clone(),
        continues: drain.node().and_then(|node| continued(drain.request(), node)),
        budgets,
        findings,
        environment: Vec::new(),
        not_ready: drain.node().and_then(|node| not_ready(node, clock.now())),
        answers: None,
        shadows,
        with_flags: None,
        drain: drain.node().map(|node| (drain.request().clone(), node.clone())),
    })
}

/// Those of these budgets that count pods of the node.
fn of_pods(budgets: Vec<Budget>, drain: &Drain) -> Vec<Budget> {
    let mut index = SelectorIndex::default();
    for (place, budget) in budgets.iter().enumerate() {
        index.insert(&budget.namespace, &budget.selector.labels, (place, budget));
    }
    let mut places = BTreeSet::new();
    for pod in drain.pods() {
        let candidates = index.candidates(&pod.id.namespace, &pod.labels);
        let selecting = candidates.filter(|(_, budget)| budget.selects(pod));
        places.extend(selecting.map(|(place, _)| *place));
    }
    let budgets = budgets.into_iter().enumerate();
    let own = budgets.filter(|(place, _)| places.contains(place));
    own.map(|(_, budget)| budget).collect()
}

/// What the shadows of the configuration would change in the plan of this drain.
async fn shadows_of(
    policies: &Session,
    drain: &Drain,
    now: Time,
    (facts, budgets): (Arc<Facts>, Option<&[Budget]>),
) -> Vec<ShadowPlan> {
    let Some(node) = drain.node() else {
        return Vec::new();
    };
    let inputs = PlanInputs {
        request: drain.request().clone(),
        node: node.clone(),
        pods: drain.pods().cloned().collect(),
        budgets: budgets.unwrap_or_default().to_vec(),
        started: now,
        now,
        facts,
    };
    let mut plans = Vec::new();
    plan_shadows(policies, &inputs, |plan| plans.push(plan)).await;
    plans
}

/// The drain of another process that a drain of a machine that is off continues.
fn continued(request: &Request, node: &Node) -> Option<String> {
    let allowed = OccupancyOverrides {
        node_is_off: request.settings.machine_is_off,
        ..OccupancyOverrides::default()
    };
    let occupancy = NodeOccupancy::of(None, request.intent, Some(node));
    match occupancy.for_command(&node.name, request.intent, allowed) {
        Ok(NodeOccupancy::Occupied(mark)) => Some(format!("{} {} ({})", mark.trigger, mark.name, mark.phase)),
        _ => None,
    }
}

/// What stands in the way of a plan, with all that can be read of the namespaces of its pods.
async fn examine(
    cluster: &Cluster,
    drain: &Drain,
    now: Time,
    plan: &Plan,
    budgets: Option<&[Budget]>,
) -> Vec<Finding> {
    let known = PreFlightCheck::of(drain, now).with_budgets(budgets.unwrap_or_default());
    let settings = &drain.request().settings;
    let (namespaces, unread) = pre_flight::read_namespaces(cluster, known.namespaces(plan), settings).await;
    if let Some(error) = unread {
        tracing::warn!("what stands in the way of the drain is only partly known: {error}");
    }
    let claims = known.claims(plan);
    let volumes = pre_flight::read_local_volumes(cluster, &drain.request().node, &claims).await;
    known.with_volumes(volumes).findings(plan, &namespaces)
}

/// The first list of them; `None`: it does not come.
async fn budgets_of(watch: &mut (impl Stream<Item = Event> + Unpin)) -> Option<Vec<Budget>> {
    let listed = watch.filter_map(|event| {
        std::future::ready(match event {
            Event::Budgets(budgets) => Some(budgets),
            _ => None,
        })
    });
    futures::pin_mut!(listed);
    timeout(BUDGETS_WITHIN, listed.next()).await.ok().flatten()
}
