//! Creates one LifecycleEvent for each node, for the transition that the driver publishes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_api::{ClaimStatus, LifecycleEvent, LifecycleTransition, TransitionNodes};
use scupper_engine::Intent;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::follower::{FollowedEvent, Follower};
use super::{HandOverEnd, HandOverError, HandOverOptions};
use crate::{CommandError, REFUSAL_PATIENCE, driver_pods, status};
use scupper_cluster::{Cluster, ConnectOptions, Connection, NewLifecycleEvent};
use scupper_config::flags_without_effect;
use scupper_driver::{
    CordonsAhead, DrainingProcess, DriverError, LocalError, NodeOccupancy, NodeSelection, OccupancyOverrides,
    draining_process, has_foreign_cordon, keeping_cordon, resolve_or_recall, would_begin_at_drivers,
};
use scupper_lease::LeaseReader;
use scupper_report::FollowEvent;

/// How often, and for how many times, an event is looked at that a driver should release.
const LOOK: Duration = Duration::from_secs(1);
const RELEASE_LOOKS: u32 = 5;
/// Limit for finding out whether a driver serves the nodes of a drain that asks none.
const DRIVERS_KNOWN_IN: Duration = Duration::from_secs(2);

/// The result of each node; `None`: the command was stopped before it began.
pub type HandOverResults = Vec<(String, Result<Option<HandOverEnd>, CommandError>)>;

/// Hands the nodes over to their drivers and follows each drain to its end; `None`: there is no driver. When `stop`
/// completes, the drivers continue what was requested, and nothing more is requested.
pub async fn run(
    options: &HandOverOptions,
    stop: impl Future<Output = ()>,
    report: impl Fn(&str, &FollowEvent),
) -> Result<Option<HandOverResults>, CommandError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        page_size: options.page_size,
        refusal_patience: REFUSAL_PATIENCE,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let found = offered(cluster.clone(), &options.driver, options.intent).await?;
    let (cluster, offered) = found.unwrap_or((cluster, Vec::new()));
    let names = resolve_or_recall(&cluster, &options.nodes, &options.lease_namespace).await?;
    if let Some(board) = &options.board {
        board.expect(names.len());
    }
    let is_served = |name: &String| offered_for(&offered, name).is_some();
    if !names.iter().any(is_served) {
        check_none_installed(&cluster, options, &names).await?;
        return Ok(None);
    }
    if let Some(flag) = options.own_flag.clone() {
        let driver = options.driver.clone();
        return Err(HandOverError::OwnFlag { driver, flag }.into());
    }
    let left = CancellationToken::new();
    tokio::pin!(stop);
    let mut ahead = None;
    if options.cordon_first && names.len() > 1 && options.intent == Intent::Drain {
        let served: Vec<_> = names.iter().filter(|name| is_served(name)).cloned().collect();
        let flags = options.flags.as_deref().unwrap_or("{}");
        tokio::select! {
            ready = would_begin_at_drivers(&cluster, options.clock, &served, flags) => {
                let say = |node: &str| report(node, &FollowEvent::CordonedFirst);
                ahead = Some(CordonsAhead::make(&cluster, options.clock.now(), &ready, say).await);
            }
            () = &mut stop => left.cancel(),
        }
    }
    let hand_over = HandOver {
        cluster: &cluster,
        options,
        offered: &offered,
        report: &report,
        left: &left,
        ahead: ahead.as_ref(),
    };
    // Whichever has ended, the next node takes its place; results are reported in the order in which the nodes were named.
    let handed = stream::iter(names.into_iter().enumerate())
        .map(async |(place, name)| (place, hand_over.one(name).await))
        .buffer_unordered(options.parallel.max(1))
        .collect::<BTreeMap<_, _>>();
    tokio::pin!(handed);
    loop {
        tokio::select! {
            handed = &mut handed => return Ok(Some(handed.into_values().collect())),
            () = &mut stop, if !left.is_cancelled() => left.cancel(),
        }
    }
}

/// Fails if a driver's pod is on one of these nodes, none of which has a transition: a drain from here would leave out what the
/// driver's policies do first. Whoever may not list pods cannot drain from here either.
async fn check_none_installed(
    cluster: &Cluster,
    options: &HandOverOptions,
    names: &[String],
) -> Result<(), HandOverError> {
    let driver = options.driver.clone();
    match driver_pods::on_any(cluster, names).await {
        Ok(None) => Ok(()),
        Err(source) if source.is_forbidden() => Ok(()),
        Err(source) => Err(HandOverError::Discover { driver, source }),
        Ok(Some((node, pod))) => Err(HandOverError::NotOffered {
            node,
            driver,
            what: options.intent.name(),
            is_ready: pod.ready,
            pod: Box::new(pod.id),
        }),
    }
}

/// The nodes that a driver would drain; none, if that is not known in time. Those of a selector are not read.
pub async fn with_drivers(connection: &Connection, driver: &str, nodes: &NodeSelection) -> Vec<String> {
    let connect = ConnectOptions {
        connection: connection.clone(),
        refusal_patience: REFUSAL_PATIENCE,
        ..ConnectOptions::default()
    };
    let found = async {
        let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
        let Some((_, offered)) = offered(cluster, driver, Intent::Drain).await? else {
            return Ok(Vec::new());
        };
        let names = match nodes {
            NodeSelection::Named(names) => names.clone(),
            NodeSelection::Selected(selector) => return Ok(vec![format!("nodes with {selector}")]),
        };
        let is_served = |name: &String| offered_for(&offered, name).is_some();
        Ok::<_, CommandError>(names.into_iter().filter(is_served).collect())
    };
    match timeout(DRIVERS_KNOWN_IN, found).await {
        Ok(Ok(names)) => names,
        Ok(Err(error)) => {
            tracing::debug!(%error, "whether drivers are there is not known");
            Vec::new()
        }
        Err(_elapsed) => Vec::new(),
    }
}

/// The cluster with the lifecycle objects where they are served, and what the driver offers there of what is wanted.
/// `None`: nothing.
pub(crate) async fn offered(
    cluster: Cluster,
    driver: &str,
    intent: Intent,
) -> Result<Option<(Cluster, Vec<LifecycleTransition>)>, HandOverError> {
    let unknown = |source| HandOverError::Discover {
        driver: driver.to_owned(),
        source,
    };
    let Some(cluster) = cluster.in_served_group().await.map_err(unknown)? else {
        return Ok(None);
    };
    let mut offered = cluster.transitions_of(driver).await.map_err(unknown)?;
    let name = match intent {
        Intent::Drain => driver.to_owned(),
        Intent::Uncordon => format!("{driver}-uncordon"),
    };
    offered.retain(|transition| match &transition.nodes {
        TransitionNodes::AllNodes => transition.name == name,
        TransitionNodes::Node(node) => transition.name == format!("{name}.{node}"),
        TransitionNodes::Selector => false,
    });
    Ok((!offered.is_empty()).then_some((cluster, offered)))
}

/// The node's own comes before one for all nodes.
pub(crate) fn offered_for<'a>(
    offered: &'a [LifecycleTransition],
    node: &str,
) -> Option<&'a LifecycleTransition> {
    let own = |transition: &&LifecycleTransition| transition.nodes == TransitionNodes::Node(node.to_owned());
    let shared = |transition: &&LifecycleTransition| transition.nodes == TransitionNodes::AllNodes;
    offered.iter().find(own).or_else(|| offered.iter().find(shared))
}

/// What every node is handed over with.
#[derive(Clone, Copy)]
pub(super) struct HandOver<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) options: &'a HandOverOptions,
    offered: &'a [LifecycleTransition],
    pub(super) report: &'a dyn Fn(&str, &FollowEvent),
    /// The command does not follow the drains any longer.
    pub(super) left: &'a CancellationToken,
    ahead: Option<&'a CordonsAhead>,
}

impl HandOver<'_> {
    async fn one(self, node: String) -> (String, Result<Option<HandOverEnd>, CommandError>) {
        let result = self.try_one(&node).await;
        // A drain that goes on without this command makes the cordon its own.
        let goes_on = matches!(result, Ok(Some(HandOverEnd::Done | HandOverEnd::Detached)));
        if let Some(ahead) = self.ahead.filter(|_| !goes_on) {
            ahead.lift(&node).await;
        }
        if let Some(board) = &self.options.board {
            board.finish(&node);
        }
        (node, result)
    }

    async fn try_one(self, node: &str) -> Result<Option<HandOverEnd>, CommandError> {
        if self.left.is_cancelled() {
            return Ok(None);
        }
        let Some(transition) = offered_for(self.offered, node) else {
            let node = node.to_owned();
            let driver = self.options.driver.clone();
            return Err(DriverError::from(LocalError::NoDriver { node, driver }).into());
        };
        let begins = async {
            let under_way = self.check(node, transition).await?;
            // Looked at first, so that no pod leaves unseen.
            let mut statuses = status::follow(self.cluster, node).await?.boxed();
            let first = statuses.next().await;
            Ok::<_, CommandError>((under_way, statuses, first))
        };
        let (under_way, statuses, first) = tokio::select! {
            begins = begins => begins?,
            () = self.left.cancelled() => return Ok(None),
        };
        let event = match under_way {
            Some(event) => event,
            None => self.request(node, transition).await?,
        };
        if let Some(board) = &self.options.board {
            board.begin(node, self.options.clock.now(), "requested");
        }
        let follower = Follower::new(self, node, event, transition, first);
        Ok(Some(follower.run(statuses).await?))
    }

    pub(super) fn lease_reader(&self) -> LeaseReader {
        let namespace = self.options.lease_namespace.clone();
        LeaseReader::new(self.cluster.clone(), namespace, self.options.clock)
    }

    /// Creates the LifecycleEvent.
    async fn request(
        &self,
        node: &str,
        transition: &LifecycleTransition,
    ) -> Result<FollowedEvent, HandOverError> {
        let what = self.options.intent.name();
        let new = NewLifecycleEvent {
            begins: format!("{what}-{node}-"),
            transition: transition.name.clone(),
            node: node.to_owned(),
            flags: self.options.flags.clone(),
        };
        let event = self
            .cluster
            .create_lifecycle_event(&new)
            .await
            .map_err(HandOverError::Ask)?;
        let asked = FollowEvent::Requested {
            what,
            event: event.name.clone(),
            driver: self.options.driver.clone(),
        };
        (self.report)(node, &asked);
        Ok(FollowedEvent {
            event,
            is_joined: false,
        })
    }

    /// Fails if another process works on the node, or an uncordon would lift a foreign cordon. A drain waits for another
    /// drain. A driver takes over what a command has abandoned: the cordon, and what policies must undo. `Some`: a driver
    /// does already what is wanted.
    async fn check(
        &self,
        node: &str,
        transition: &LifecycleTransition,
    ) -> Result<Option<FollowedEvent>, CommandError> {
        let unseen = DriverError::of_node(node);
        let found = self.cluster.node(node).await.map_err(&unseen)?;
        let intent = self.options.intent;
        let occupancy = NodeOccupancy::of(None, intent, found.as_ref());
        let events = self.cluster.events_of(node).await.map_err(unseen)?;
        let mut claimed = events
            .into_iter()
            .filter(|event| event.claim == ClaimStatus::Claimed)
            .collect::<Vec<_>>();
        let is_the_same = |event: &&LifecycleEvent| event.transition == transition.name && !event.deleting;
        if let Some(event) = claimed.iter().find(is_the_same) {
            let (own, begun) = (self.options.flags.as_deref(), event.flags.as_deref());
            let joined = FollowEvent::Joined {
                event: event.name.clone(),
                without: flags_without_effect(own.unwrap_or("{}"), begun.unwrap_or("{}")),
            };
            (self.report)(node, &joined);
            return Ok(Some(FollowedEvent {
                event: event.clone(),
                is_joined: true,
            }));
        }
        let mut claimed = claimed.pop();
        if let (NodeOccupancy::Occupied(mark), None) = (&occupancy, &claimed) {
            let mut leases = self.lease_reader();
            let keeps_cordon = intent == Intent::Uncordon && found.as_ref().is_some_and(has_foreign_cordon);
            let does = match intent {
                Intent::Drain if mark.intent == Intent::Uncordon => "its driver drains the node instead",
                Intent::Drain => "its driver takes over",
                Intent::Uncordon if keeps_cordon => &keeping_cordon(node, mark),
                Intent::Uncordon => "its driver gives the node back",
            };
            match draining_process(&mut leases, node, mark, does).await {
                DrainingProcess::Gone if keeps_cordon => {
                    let node = node.to_owned();
                    return Err(DriverError::from(LocalError::ForeignCordon { node }).into());
                }
                DrainingProcess::Gone => return Ok(None),
                // Its driver begins when that ends, which `StatusDiff` says. It may have left pods that are to leave now.
                DrainingProcess::Alive if (intent, mark.intent) == (Intent::Drain, Intent::Drain) => {
                    // Of a driver only the Lease tells.
                    if leases.is_held(node).await {
                        return Ok(None);
                    }
                }
                DrainingProcess::Alive | DrainingProcess::Unknown => {}
            }
        }
        let ended = found.as_ref().and_then(|node| node.checkpoint.as_ref());
        let ended = ended.filter(|mark| !mark.is_under_way());
        let is_over =
            |event: &LifecycleEvent| event.deleting || ended.is_some_and(|mark| mark.id == event.uid);
        let is_idle = !matches!(occupancy, NodeOccupancy::Occupied(_));
        if let Some(event) = claimed.take_if(|event| is_idle && is_over(event)) {
            self.await_release(node, &event).await?;
        }
        occupancy
            .and_claimed(claimed.map(|event| event.name))
            .for_command(node, intent, OccupancyOverrides::default())
            .map_err(DriverError::from)?;
        Ok(None)
    }

    /// Waits a moment for the driver to release an event that no drain is under way for. Fails if it does not.
    async fn await_release(&self, node: &str, event: &LifecycleEvent) -> Result<(), CommandError> {
        for _ in 0..RELEASE_LOOKS {
            let events = self
                .cluster
                .events_of(node)
                .await
                .map_err(DriverError::of_node(node))?;
            let is_held = |known: &LifecycleEvent| known.uid == event.uid && !known.claim.is_terminal();
            if !events.iter().any(is_held) {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        Err(HandOverError::NotReleased {
            node: node.to_owned(),
            event: event.name.clone(),
            what: self.options.intent.name(),
        }
        .into())
    }
}
