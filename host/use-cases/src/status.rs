//! The status of nodes, read from the API server alone: drivers publish there what only they know, so it also works while
//! a driver is down.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use scupper_api::{Change, LifecycleEvent};
use scupper_engine::{Budget, Event, Node, Pod, Uid};
use tokio::time::timeout;

use crate::details::DetailReader;
use crate::{CommandError, REFUSAL_PATIENCE};
use scupper_cluster::{Cluster, ConnectOptions, Connection};
use scupper_common::clock::Clock;
use scupper_driver::{DriverError, NodeSelection, resolve_or_recall};
use scupper_lease::LeaseReader;
use scupper_report::{
    LeaseHolder, NodeStatus, NodeSummary, STATUS_ANNOTATION, StatusDetails, status_from_text,
};

/// How often to check the process that drains while nothing changes.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Options of the status.
#[derive(Clone, Debug)]
pub struct StatusOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The nodes.
    pub nodes: NodeSelection,
    /// What time it is.
    pub clock: Clock,
    /// Where the leases of nodes are.
    pub lease_namespace: String,
    /// Report every change; otherwise each node once.
    pub watch: bool,
}

/// What is reported of a node.
#[derive(Clone, Copy, Debug)]
pub enum StatusNews<'a> {
    /// Where it stands.
    Status(&'a NodeStatus),
    /// The node of this name does not exist any more.
    Gone(&'a str),
}

/// Reports the status of each node, once or at every change; in that case it never ends unless there is no node. Returns how
/// many there are.
pub async fn status(
    options: StatusOptions,
    mut report: impl FnMut(StatusNews<'_>),
) -> Result<usize, CommandError> {
    let cluster = connect(&options.connection).await?;
    let names = resolve_or_recall(&cluster, &options.nodes, &options.lease_namespace).await?;
    let mut followed = Vec::new();
    for name in &names {
        let name = name.clone();
        let statuses = follow_if_there(&cluster, &name).await?;
        followed.push(statuses.map(move |status| (name.clone(), status)).boxed());
    }
    let namespace = options.lease_namespace.clone();
    let leases = LeaseReader::new(cluster.clone(), namespace, options.clock);
    let mut lookups = Lookups {
        leases: match &options.nodes {
            NodeSelection::Named(_) => leases.of_named(),
            NodeSelection::Selected(_) => leases,
        },
        details: DetailReader::new(cluster, options.clock),
    };
    if options.watch {
        watch(followed, lookups, report).await;
        return Ok(names.len());
    }
    let mut gone = None;
    for mut one in followed {
        match one.next().await {
            Some((_, Some(mut status))) => {
                lookups.complete(&mut status).await;
                report(StatusNews::Status(&status));
            }
            // A selector chooses what is there.
            Some((node, None)) if matches!(options.nodes, NodeSelection::Selected(_)) => {
                report(StatusNews::Gone(&node));
            }
            Some((node, None)) => gone = gone.or(Some(node)),
            None => {}
        }
    }
    match gone {
        Some(node) => {
            let nearest = Vec::new();
            Err(DriverError::NoSuchNode { node, nearest }.into())
        }
        None => Ok(names.len()),
    }
}

async fn connect(connection: &Connection) -> Result<Cluster, DriverError> {
    let options = ConnectOptions {
        connection: connection.clone(),
        refusal_patience: REFUSAL_PATIENCE,
        ..ConnectOptions::default()
    };
    Cluster::connect(&options).await.map_err(DriverError::Connect)
}

/// The nodes with news, and how many others there are.
pub async fn overview(
    connection: &Connection,
    lease_namespace: &str,
    clock: Clock,
) -> Result<(Vec<NodeSummary>, usize), CommandError> {
    let cluster = connect(connection).await?;
    let nodes = cluster.nodes().await.map_err(|source| DriverError::Selector {
        selector: String::new(),
        source,
    })?;
    let events = match cluster.clone().in_served_group().await {
        Ok(Some(cluster)) => cluster.all_events().await,
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let events = events.unwrap_or_else(|error| {
        tracing::warn!(%error, "LifecycleEvents that no driver has claimed are not shown");
        Vec::new()
    });
    let mut leases = LeaseReader::new(cluster, lease_namespace.to_owned(), clock);
    let (all, now) = (nodes.len(), clock.wall());
    let mut summaries = Vec::new();
    for node in nodes {
        let of_node = events.iter().filter(|event| event.node == node.name).cloned();
        let of_node = of_node.collect();
        let mut status = node_status(node, of_node);
        (status.lease_holder, status.leased_drain) = leases.holder_of(&status.node).await;
        summaries.extend(NodeSummary::of(&status, now));
    }
    let others = all - summaries.len();
    Ok((summaries, others))
}

/// What the node's own object says, and its LifecycleEvents.
fn node_status(mut node: Node, lifecycle_events: Vec<LifecycleEvent>) -> NodeStatus {
    let drain = node.checkpoint.as_ref().map(|mark| mark.id.clone());
    // The status of another drain says nothing about this one.
    let driver = node.annotations.remove(STATUS_ANNOTATION);
    let driver = driver.and_then(|text| status_from_text(&text));
    let driver = driver.filter(|view| Some(&view.drain) == drain.as_ref());
    NodeStatus {
        node,
        driver,
        pods: Vec::new(),
        budgets: Vec::new(),
        lifecycle_events,
        lease_holder: LeaseHolder::Unknown,
        leased_drain: None,
        details: StatusDetails::default(),
    }
}

/// What no watch shows.
struct Lookups {
    leases: LeaseReader,
    details: DetailReader,
}

impl Lookups {
    /// The details last: what blocks a pod depends on whether the process that drains is alive.
    async fn complete(&mut self, status: &mut NodeStatus) {
        (status.lease_holder, status.leased_drain) = self.leases.holder_of(&status.node).await;
        status.details = self.details.read(status).await;
    }
}

/// A killed process changes nothing, so this also checks at intervals.
async fn watch(
    followed: Vec<BoxStream<'static, (String, Option<NodeStatus>)>>,
    mut lookups: Lookups,
    mut report: impl FnMut(StatusNews<'_>),
) {
    let mut all = stream::select_all(followed);
    // `None`: it is gone.
    let mut last: BTreeMap<String, Option<NodeStatus>> = BTreeMap::new();
    loop {
        let diff = match timeout(LOOK_AGAIN, all.next()).await {
            Ok(None) => return,
            Ok(Some((node, None))) => {
                // Its pods go one after another.
                if !matches!(last.insert(node.clone(), None), Some(None)) {
                    report(StatusNews::Gone(&node));
                }
                continue;
            }
            Ok(Some((_, Some(status)))) => vec![status],
            Err(_) => last.values().flatten().cloned().collect(),
        };
        for mut status in diff {
            lookups.complete(&mut status).await;
            report(StatusNews::Status(&status));
            last.insert(status.node.name.clone(), Some(status));
        }
    }
}

/// What the watches have shown of a node so far.
#[derive(Default)]
struct KnownState {
    /// Listed, and there.
    node: Option<Option<Node>>,
    pods: Option<BTreeMap<Uid, Pod>>,
    budgets: Option<Vec<Budget>>,
    lifecycle_events: Option<Vec<LifecycleEvent>>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once, never stored"
)]
enum Update {
    Cluster(Event),
    LifecycleEvents(Change<LifecycleEvent>),
}

/// The node's status, from when all of it is known, and again after each change.
pub(super) async fn follow(
    cluster: &Cluster,
    node: &str,
) -> Result<impl Stream<Item = NodeStatus> + Send + use<>, CommandError> {
    let statuses = follow_if_there(cluster, node).await?;
    Ok(statuses.filter_map(std::future::ready))
}

/// The same, and `None` while there is no such node.
async fn follow_if_there(
    cluster: &Cluster,
    node: &str,
) -> Result<impl Stream<Item = Option<NodeStatus>> + Send + use<>, CommandError> {
    let unseen = DriverError::of_node(node);
    let lifecycle_events = match cluster.clone().in_served_group().await.map_err(unseen)? {
        Some(cluster) => cluster.lifecycle_events_if_allowed(node),
        None => stream::once(std::future::ready(Change::Listed(Vec::new()))).boxed(),
    };
    let diff = stream::select(
        cluster.watch(node).map(Update::Cluster),
        lifecycle_events.map(Update::LifecycleEvents),
    );
    let mut known = KnownState::default();
    Ok(diff.filter_map(move |diff| {
        known.observe(diff);
        std::future::ready(known.status())
    }))
}

impl KnownState {
    fn observe(&mut self, diff: Update) {
        match diff {
            Update::LifecycleEvents(change) => self.apply_event(change),
            Update::Cluster(event) => match event {
                Event::Node(node) => self.node = Some(node),
                Event::Pods(pods) => {
                    let by_uid = pods.into_iter().map(|pod| (pod.id.uid.clone(), pod));
                    self.pods = Some(by_uid.collect());
                }
                Event::PodApplied(pod) => {
                    let pods = self.pods.get_or_insert_default();
                    pods.insert(pod.id.uid.clone(), pod);
                }
                Event::PodDeleted(uid) => {
                    self.pods.get_or_insert_default().remove(&uid);
                }
                Event::Budgets(budgets) => self.budgets = Some(budgets),
                Event::BudgetApplied(budget) => {
                    let budgets = self.without(&budget.namespace, &budget.name);
                    budgets.push(budget);
                }
                Event::BudgetDeleted { namespace, name } => {
                    self.without(&namespace, &name);
                }
                _ => {}
            },
        }
    }

    fn without(&mut self, namespace: &str, name: &str) -> &mut Vec<Budget> {
        let budgets = self.budgets.get_or_insert_default();
        budgets.retain(|known| known.namespace != namespace || known.name != name);
        budgets
    }

    fn apply_event(&mut self, change: Change<LifecycleEvent>) {
        let lifecycle_events = self.lifecycle_events.get_or_insert_default();
        match change {
            Change::Listed(all) => *lifecycle_events = all,
            Change::Applied(event) => {
                lifecycle_events.retain(|known| known.uid != event.uid);
                lifecycle_events.push(event);
            }
            Change::Deleted(event) => lifecycle_events.retain(|known| known.uid != event.uid),
        }
    }

    /// The status, once everything is known; `Some(None)`: there is no such node.
    fn status(&self) -> Option<Option<NodeStatus>> {
        let Some(node) = self.node.as_ref()? else {
            return Some(None);
        };
        let (pods, budgets) = (self.pods.as_ref()?, self.budgets.as_ref()?);
        let lifecycle_events = self.lifecycle_events.as_ref()?;
        Some(Some(NodeStatus {
            pods: pods.values().cloned().collect(),
            budgets: budgets.clone(),
            ..node_status(node.clone(), lifecycle_events.clone())
        }))
    }
}
