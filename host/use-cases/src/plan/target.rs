//! Which drains to plan: those of nodes, by command, or that of a DrainRequest.

use scupper_engine::{Intent, Request, Settings, Trigger};

use super::PlanOptions;
use crate::CommandError;
use scupper_cluster::Cluster;
use scupper_config::DrainRequestsFile;
use scupper_driver::{NodeSelection, plan_drain_request, resolve_nodes};
use scupper_triggers::drain_request::{PlannedDrain, ServedRequests};

/// The name of the drain that is planned, as policies see it.
const PLAN_NAME: &str = "plan";

/// Whose drains to plan.
#[derive(Clone, Debug)]
pub enum PlanTarget {
    /// Drains of nodes, by command.
    Nodes(NodeSelection),
    /// The drain of a DrainRequest.
    DrainRequest(Box<DrainRequestToPlan>),
}

/// A DrainRequest, and how the driver serves it.
#[derive(Clone, Debug)]
pub struct DrainRequestToPlan {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How the driver serves it.
    pub config: DrainRequestsFile,
}

/// Who asks for the drain that is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTrigger {
    /// The trigger.
    pub trigger: Trigger,
    /// The drain's name, as policies see it.
    pub name: String,
    /// The DrainRequests that it serves: namespace and name.
    pub requests: Vec<String>,
    /// It takes only the pods that they name.
    pub is_partial: bool,
    /// The driver's settings apply, which only its configuration changes.
    pub is_as_driver: bool,
    /// A driver would carry it out, with policies of its own, which are not known here.
    pub is_handed_over: bool,
}

/// A command.
impl Default for PlannedTrigger {
    fn default() -> Self {
        Self {
            trigger: Trigger::Command,
            name: PLAN_NAME.to_owned(),
            requests: Vec::new(),
            is_partial: false,
            is_as_driver: false,
            is_handed_over: false,
        }
    }
}

impl PlannedTrigger {
    pub(super) fn of(request: &Request, served: Option<&ServedRequests>, is_as_driver: bool) -> Self {
        let served = served.iter().flat_map(|served| &served.requests);
        Self {
            trigger: Trigger::of(&request.trigger),
            name: request.name.clone(),
            requests: served
                .map(|request| format!("{}/{}", request.namespace, request.name))
                .collect(),
            is_partial: request.settings.filters.only_pods.is_some(),
            is_as_driver,
            is_handed_over: false,
        }
    }
}

/// The drains to plan.
pub(super) struct Drains {
    /// Their nodes.
    pub(super) nodes: Vec<String>,
    /// What their requests have in common.
    pub(super) template: Request,
    /// The DrainRequests that policies may ask about.
    pub(super) served: Option<ServedRequests>,
}

/// The request of a command, for any node.
pub(super) fn by_command(settings: &Settings) -> Request {
    Request {
        id: PLAN_NAME.to_owned(),
        name: PLAN_NAME.to_owned(),
        trigger: Trigger::Command.name().to_owned(),
        intent: Intent::Drain,
        node: String::new(),
        deadline: None,
        settings: settings.clone(),
        policies: Vec::new(),
    }
}

/// Who is to be drained, and for whom: of a DrainRequest what the driver would do.
pub(super) async fn drains(cluster: &Cluster, options: &PlanOptions) -> Result<Drains, CommandError> {
    let by_command = by_command(&options.settings.engine);
    let wanted = match &options.target {
        PlanTarget::Nodes(nodes) => {
            return Ok(Drains {
                nodes: resolve_nodes(cluster, nodes).await?,
                template: by_command,
                served: None,
            });
        }
        PlanTarget::DrainRequest(wanted) => wanted,
    };
    let named = (wanted.namespace.as_str(), wanted.name.as_str());
    let (node, planned) = plan_drain_request(cluster, &wanted.config, named, options.clock).await?;
    let PlannedDrain { drain, served } = planned;
    let mut settings = options.settings.engine.clone();
    settings.filters.only_pods = drain.only_pods;
    let template = Request {
        id: drain.id,
        name: drain.name,
        trigger: drain.trigger,
        settings,
        ..by_command
    };
    Ok(Drains {
        nodes: resolve_nodes(cluster, &NodeSelection::Named(vec![node])).await?,
        template,
        served: Some(served),
    })
}
