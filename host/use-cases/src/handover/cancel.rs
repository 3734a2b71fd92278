//! Cancels drains: deletes the LifecycleEvent; any other drain is cancelled by an annotation of its node, which the
//! process that drains watches. If that process is gone, this one undoes its drain.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use scupper_api::LifecycleEvent;
use scupper_engine::{Checkpoint, HumanDuration, Intent, Node, Outcome};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};

use super::create::{offered, offered_for};
use super::{CancelOptions, HandOverError};
use crate::{CommandError, driver_pods, status};
use scupper_cluster::{CANCEL_ANNOTATION, Cluster, ConnectOptions, OPTIONAL_READ_PATIENCE};
use scupper_driver::{
    CordonsAhead, DriverError, LocalOptions, NodeSelection, RollBack, resolve_nodes, run_locally,
};
use scupper_lease::{LeaseReader, ObservedLease};
use scupper_recording::RecordingTarget;
use scupper_report::{Format, LeasedDrain, NodeStatus};

/// How often the node's Lease is read while the end is waited for.
const LOOK: Duration = Duration::from_secs(1);
/// After so long the command says what it waits for.
const SILENCE: Duration = Duration::from_secs(3);
/// Within this a driver that runs outside of a pod releases what no drain is under way for.
const SOON: Duration = Duration::from_secs(2);
/// For so long a refused list of LifecycleEvents is retried where none was deleted: the node alone shows the end then.
const REFUSED_READS: Duration = Duration::from_secs(1);
/// Why a drain ends whose process is gone.
const REASON: &str = "stopped by scupper cancel; the draining process was gone";

/// What was cancelled at each node.
pub(super) type CancelResults = Vec<(String, Result<Cancelled, CommandError>)>;

/// What was cancelled at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The node.
    pub node: String,
    /// What was cancelled: `LifecycleEvent drain-worker-1-x7d2p`.
    pub drains: Vec<String>,
    /// The trigger of the drain that was under way: [`Checkpoint::trigger`].
    pub by: String,
    /// LifecycleEvents are among them.
    pub has_events: bool,
    /// How it ended.
    pub end: CancelEnd,
    /// No drain was under way, also not for a LifecycleEvent that was withdrawn.
    pub was_idle: bool,
    /// No drain was under way, but Scupper's cordon was still on the node.
    pub was_cordoned: bool,
}

/// How a cancelled drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelEnd {
    /// Its process has ended it.
    Ended,
    /// Its process is gone, and this one has undone the drain.
    RolledBack,
    /// It has not ended in time.
    Pending,
}

/// Cancels every drain of the nodes that has not ended, and waits for their ends: one that takes its time, or fails, keeps no
/// other from its own.
pub async fn cancel(options: &CancelOptions) -> Result<CancelResults, CommandError> {
    let cluster = connect(options, OPTIONAL_READ_PATIENCE).await?;
    let mut asked = Vec::new();
    // All of them are asked before any is waited for.
    for node in resolve_nodes(&cluster, &options.nodes).await? {
        let namespace = options.lease_namespace.clone();
        let leases = LeaseReader::new(cluster.clone(), namespace, options.clock);
        let request = ask(&cluster, options, &leases, &node).await;
        asked.push((node, request, leases));
    }
    let waits = Waits {
        until: Instant::now() + options.wait_timeout,
        rolls_back: &Semaphore::new(1),
    };
    let ends = asked.into_iter().map(async |(node, request, leases)| {
        let cancelled = match request {
            Ok(request) => request.end(&cluster, options, leases, &node, waits).await,
            Err(error) => Err(error),
        };
        (node, cancelled)
    });
    Ok(join_all(ends).await)
}

/// `refusals`: how long a refused read that is not needed may be a hiccup.
async fn connect(options: &CancelOptions, refusals: Duration) -> Result<Cluster, DriverError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        refusal_patience: refusals,
        ..ConnectOptions::default()
    };
    Cluster::connect(&connect).await.map_err(DriverError::Connect)
}

/// What the waits for all nodes share.
#[derive(Clone, Copy)]
struct Waits<'a> {
    until: Instant,
    /// One node after another: each roll-back compiles the policies, which takes much memory.
    rolls_back: &'a Semaphore,
}

/// What was asked to stop.
struct CancelRequest {
    events: Vec<LifecycleEvent>,
    /// The drain whose id was written into the annotation.
    annotated: Option<LeasedDrain>,
    /// What a drain has left on the node: it must be undone, if necessary by this process.
    mark: Option<Checkpoint>,
    /// No drain was under way.
    is_idle: bool,
    /// The node is cordoned by Scupper, and no drain is under way.
    is_cordoned: bool,
    /// The cordon that a command has made ahead of a drain which had not begun when its LifecycleEvent was deleted.
    ahead: Option<CordonsAhead>,
}

async fn ask(
    cluster: &Cluster,
    options: &CancelOptions,
    leases: &LeaseReader,
    node: &str,
) -> Result<CancelRequest, CommandError> {
    let unseen = DriverError::of_node(node);
    let mut events = Vec::new();
    let found = match offered(cluster.clone(), &options.driver, Intent::Drain).await {
        // Without the right to see what drivers offer, this account drains with --local, and cancels that.
        Err(HandOverError::Discover { source, .. }) if source.is_forbidden() => {
            tracing::warn!("node {node}: no LifecycleEvent is withdrawn: {source}");
            None
        }
        found => found?,
    };
    if let Some((cluster, offered)) = found
        && let Some(transition) = offered_for(&offered, node)
    {
        for event in cluster.events_of(node).await.map_err(&unseen)? {
            if event.transition == transition.name && !event.claim.is_terminal() {
                cluster
                    .delete_event(&event)
                    .await
                    .map_err(HandOverError::TakeBack)?;
                events.push(event);
            }
        }
    }
    let found = cluster.node(node).await.map_err(unseen)?;
    let at_work = at_work(found.as_ref(), leases, node).await;
    let is_idle = matches!(at_work, Some(None));
    let is_of_event = |drain: &LeasedDrain| events.iter().any(|event| event.uid == drain.id);
    let annotated = at_work.flatten().filter(|drain| !is_of_event(drain));
    if annotated.is_some() {
        // What was deleted before waits for another driver.
        events.retain(|event| !event.deleting);
    }
    if let Some(drain) = &annotated {
        let set = cluster
            .set_node_annotation(node, CANCEL_ANNOTATION, &drain.id)
            .await;
        set.map_err(HandOverError::TakeBack)?;
    }
    let unschedulable = found.as_ref().is_some_and(|node| node.unschedulable);
    let mark = found.and_then(|node| node.checkpoint);
    let ahead = mark.as_ref().filter(|_| !events.is_empty());
    Ok(CancelRequest {
        ahead: ahead.and_then(|mark| CordonsAhead::found(cluster, mark)),
        events,
        annotated,
        is_idle,
        is_cordoned: unschedulable
            && mark
                .as_ref()
                .is_some_and(|mark| mark.own_cordon && !mark.is_under_way()),
        mark: mark.filter(is_drain),
    })
}

fn is_drain(mark: &Checkpoint) -> bool {
    mark.is_under_way() && mark.intent == Intent::Drain
}

/// The drain that has left its mark on the node, or else the one that holds the node's Lease: it plans, and has changed
/// nothing. `None`: that is not known.
async fn at_work(node: Option<&Node>, leases: &LeaseReader, name: &str) -> Option<Option<LeasedDrain>> {
    let mark = node.and_then(|node| node.checkpoint.as_ref());
    if let Some(mark) = mark.filter(|mark| is_drain(mark)) {
        return Some(Some(LeasedDrain::of_mark(mark)));
    }
    match leases.drain_of(name).await {
        Ok(drain) => {
            let has_ended = |id: &String| mark.is_some_and(|mark| mark.id == *id);
            Some(drain.filter(|drain| drain.intent == Intent::Drain && !has_ended(&drain.id)))
        }
        Err(error) => {
            tracing::warn!("node {name}: whether a drain plans there is not known: {error}");
            None
        }
    }
}

impl CancelRequest {
    fn is_nothing(&self) -> bool {
        self.events.is_empty() && self.annotated.is_none()
    }

    fn names(&self) -> Vec<String> {
        let events = self
            .events
            .iter()
            .map(|event| format!("LifecycleEvent {}", event.name));
        let drain = self
            .annotated
            .iter()
            .map(|drain| format!("{} {}", drain.trigger, drain.name));
        events.chain(drain).collect()
    }

    fn trigger(&self) -> String {
        let annotated = self.annotated.as_ref().map(|drain| &drain.trigger);
        let trigger = annotated.or_else(|| self.mark.as_ref().map(|mark| &mark.trigger));
        trigger.cloned().unwrap_or_default()
    }

    /// Waits for the end, and takes back what asked for it.
    async fn end(
        &self,
        cluster: &Cluster,
        options: &CancelOptions,
        mut leases: LeaseReader,
        node: &str,
        waits: Waits<'_>,
    ) -> Result<Cancelled, CommandError> {
        let end = match self.is_nothing() {
            true => Ok(CancelEnd::Ended),
            false => self.wait(cluster, options, &mut leases, node, waits).await,
        };
        if self.annotated.is_some() {
            let removed = cluster.remove_node_annotation(node, CANCEL_ANNOTATION).await;
            removed.map_err(HandOverError::TakeBack)?;
        }
        let end = end?;
        if let Some(ahead) = self.ahead.as_ref().filter(|_| end == CancelEnd::Ended) {
            ahead.lift(node).await;
        }
        Ok(Cancelled {
            drains: self.names(),
            has_events: !self.events.is_empty(),
            by: self.trigger(),
            node: node.to_owned(),
            end,
            was_idle: self.is_idle,
            was_cordoned: self.is_cordoned,
        })
    }

    /// Waits until it has ended. If its process is gone, undoes what that has left on the node.
    async fn wait(
        &self,
        cluster: &Cluster,
        options: &CancelOptions,
        leases: &mut LeaseReader,
        node: &str,
        waits: Waits<'_>,
    ) -> Result<CancelEnd, CommandError> {
        let waits = self.shortened(cluster, node, waits).await;
        let follows = match self.events.is_empty() {
            true => connect(options, REFUSED_READS).await?,
            false => cluster.clone(),
        };
        let mut statuses = status::follow(&follows, node).await?.boxed();
        let mut silence = Some(Instant::now() + SILENCE);
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = None;
        loop {
            tokio::select! {
                () = sleep_until(waits.until) => return Ok(CancelEnd::Pending),
                () = sleep_until(silence.unwrap_or(waits.until)), if silence.is_some() => {
                    silence = None;
                    let (what, left) = (self.names().join(", "), waits.until.saturating_duration_since(Instant::now()));
                    tracing::info!("node {node}: waiting for {what} to end, for up to {} more", HumanDuration(left));
                }
                status = statuses.next() => last = status.or(last),
                _ = look.tick() => {
                    let has_ended = last.as_ref().is_some_and(|status| !self.is_marked(status));
                    if self.mark.is_some() && !has_ended && leases.is_abandoned(node).await {
                        let turn = timeout_at(waits.until, waits.rolls_back.acquire()).await;
                        // Its process may have come back meanwhile.
                        if turn.is_ok() && leases.is_abandoned(node).await {
                            return roll_back(options, node, leases.observed(node)).await;
                        }
                    }
                }
            }
            let is_over = last.as_ref().is_some_and(|status| self.is_over(status));
            if is_over && !self.plans(leases, node).await {
                return Ok(CancelEnd::Ended);
            }
        }
    }

    /// What an earlier command has deleted, and no drain is under way for, a driver that runs releases at once.
    async fn shortened<'a>(&self, cluster: &Cluster, node: &str, waits: Waits<'a>) -> Waits<'a> {
        let is_old = self.is_idle && self.events.iter().all(|event| event.deleting);
        let may_be_released = async || {
            let pod = driver_pods::on(cluster, node).await;
            pod.is_ok_and(|pod| pod.is_some_and(|pod| pod.ready))
        };
        if !is_old || may_be_released().await {
            return waits;
        }
        Waits {
            until: waits.until.min(Instant::now() + SOON),
            ..waits
        }
    }

    /// The drain that had left nothing on the node still holds the Lease. A Lease that cannot be read says nothing.
    async fn plans(&self, leases: &LeaseReader, node: &str) -> bool {
        let Some(drain) = self.annotated.as_ref().filter(|_| self.mark.is_none()) else {
            return false;
        };
        let held = leases.drain_of(node).await;
        held.map_or(true, |held| held.is_some_and(|held| held.id == drain.id))
    }

    /// The node has a mark of what was asked to stop, and that is under way.
    fn is_marked(&self, status: &NodeStatus) -> bool {
        let ids = self.events.iter().map(|event| &event.uid);
        let mut ids = ids.chain(self.annotated.iter().map(|drain| &drain.id));
        let mark = status.node.checkpoint.as_ref();
        mark.is_some_and(|mark| mark.is_under_way() && ids.any(|id| *id == mark.id))
    }

    fn is_over(&self, status: &NodeStatus) -> bool {
        let there = |event: &LifecycleEvent| {
            status
                .lifecycle_events
                .iter()
                .any(|known| known.name == event.name)
        };
        !self.is_marked(status) && !self.events.iter().any(there)
    }
}

/// Undoes the drain of a process that is gone, as that process would have done.
async fn roll_back(
    options: &CancelOptions,
    node: &str,
    lease: Option<ObservedLease>,
) -> Result<CancelEnd, CommandError> {
    let local = LocalOptions {
        connection: options.connection.clone(),
        nodes: NodeSelection::Named(vec![node.to_owned()]),
        intent: Intent::Drain,
        drain: options.settings.clone(),
        policies: options.policies.clone(),
        parallel: 1,
        cordon_first: false,
        take_over: true,
        roll_back: Some(RollBack {
            reason: REASON.to_owned(),
            lease,
        }),
        any_cordon: false,
        format: Format::Human,
        output: Arc::new(|| Box::new(std::io::sink())),
        board: None,
        lease_namespace: options.lease_namespace.clone(),
        traces: None,
        recordings: RecordingTarget::Nowhere,
        clock: options.clock,
        compiler: None,
    };
    let ended = run_locally(local, std::future::pending()).await?;
    let result = ended.into_iter().next().map(|ended| ended.result);
    match result.transpose()?.flatten() {
        Some(Outcome::Cancelled { .. }) => Ok(CancelEnd::RolledBack),
        // Another process was faster.
        Some(_) => Ok(CancelEnd::Ended),
        None => Ok(CancelEnd::Pending),
    }
}
