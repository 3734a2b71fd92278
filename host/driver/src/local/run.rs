//! Drains several nodes, one after another or some at once, each with an engine of its own.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::{Checkpoint, Intent, Outcome, Request, Time, Trigger};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::LocalOptions;
use super::abandoned::{self, FoundDrain};
use super::begin::{self, NodeAtDrainStart};
use super::cordon_ahead::CordonsAhead;
use super::drain_factory::LocalDrainFactory;
use super::{called_off, nodes, plan_ahead};
use crate::occupancy::LocalError;
use crate::{DriverError, policies};
use scupper_cluster::{Cluster, ConnectOptions};
use scupper_lease::{HolderIdentity, NodeLeases};
use scupper_metrics::Metrics;
use scupper_policy_reload::Session;
use scupper_report::{FollowEvent, FollowOutput, Format};
use scupper_runner::leased_runner::LeasedRunner;
use scupper_runner::orders::DrainOrders;
use scupper_runner::reporter::policy_messages::PolicyMessages;
use scupper_runner::reporter::{Output, Reporter};
use scupper_screen::PrefixedWriter;
use scupper_traces::Traces;

/// A person waits no longer than this for a Lease that is refused, if the API server does not say that it always will be:
/// a user of `kubectl drain` often has no right to Leases.
const LEASE_FORBIDDEN: Duration = Duration::from_secs(10);

/// Nor does a person wait longer than this for a refused read that the drain can do without; it is tried again later.
const REFUSED_READS: Duration = Duration::from_secs(1);

/// The result of one node.
#[derive(Debug)]
pub struct NodeDrainResult {
    /// The node.
    pub node: String,
    /// `None`: the command was stopped before it began. An error: it could not begin.
    pub result: Result<Option<Outcome>, DriverError>,
}

/// Drains all nodes. A failure on one node does not stop the others. When `stop` completes, running drains are cancelled
/// and no further one begins.
pub async fn run(
    options: LocalOptions,
    stop: impl Future<Output = ()>,
) -> Result<Vec<NodeDrainResult>, DriverError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        eviction_timeout: options.drain.eviction_timeout,
        page_size: options.drain.page_size,
        refusal_patience: REFUSED_READS,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let names = nodes::resolve_or_recall(&cluster, &options.nodes, &options.lease_namespace).await?;
    if let Some(board) = &options.board {
        board.expect(names.len());
    }
    let compiler = options.compiler.clone();
    let loaded = policies::load(&options.policies, compiler, options.clock, &cluster, None).await?;
    // A command serves no metrics.
    let metrics = Metrics::new();
    let traces = options.traces.as_ref();
    let traces = traces.map(|settings| Traces::new(settings, metrics.trace_spans_dropped()));
    let (traces, exporter) = traces.transpose().map_err(DriverError::Traces)?.unzip();
    let exporting = exporter.map(tokio::spawn);
    let mut drains = LocalDrains {
        many: names.len() > 1,
        session: Arc::new(Session::fixed(loaded.policies)),
        policy_messages: loaded.policy_messages,
        cancel: CancellationToken::new(),
        leases: NodeLeases {
            cluster: cluster.clone(),
            namespace: options.lease_namespace.clone(),
            own: HolderIdentity::own(options.drain.engine.own_pod.as_ref()),
            forbidden_timeout: LEASE_FORBIDDEN.min(options.drain.engine.forbidden_timeout),
            is_of_a_command: true,
            observed: options.roll_back.as_ref().and_then(|it| it.lease.clone()),
        },
        cluster,
        options,
        traces,
        ahead: None,
    };
    tokio::pin!(stop);
    if drains.many && drains.options.cordon_first && drains.options.intent == Intent::Drain {
        let planned = tokio::select! {
            nodes = drains.would_begin(&names) => Some(nodes),
            () = &mut stop => None,
        };
        match planned {
            Some(nodes) => drains.ahead = Some(drains.cordon_ahead(&nodes).await),
            None => drains.cancel.cancel(),
        }
    }
    let drains = drains;
    // Whichever has ended, the next node takes its place; results are reported in the order in which the nodes were named.
    let ended = stream::iter(names.into_iter().enumerate())
        .map(async |(place, name)| (place, drains.one(name).await))
        .buffer_unordered(drains.options.parallel.max(1))
        .collect::<BTreeMap<_, _>>();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            ended = &mut ended => {
                if let Some((traces, exporting)) = drains.traces.as_ref().zip(exporting) {
                    traces.close();
                    exporting.await.unwrap_or_default();
                }
                return Ok(ended.into_values().collect());
            }
            () = &mut stop, if !drains.cancel.is_cancelled() => drains.cancel.cancel(),
        }
    }
}

pub(super) struct LocalDrains {
    /// More than one node: lines say which.
    many: bool,
    pub(super) cluster: Cluster,
    pub(super) session: Arc<Session>,
    pub(super) policy_messages: PolicyMessages,
    pub(super) options: LocalOptions,
    pub(super) traces: Option<Traces>,
    cancel: CancellationToken,
    leases: NodeLeases,
    ahead: Option<CordonsAhead>,
}

impl LocalDrains {
    async fn one(&self, node: String) -> NodeDrainResult {
        let result = self.try_one(&node).await;
        if let Some(ahead) = self
            .ahead
            .as_ref()
            .filter(|_| !matches!(result, Ok(Some(Outcome::Drained))))
        {
            ahead.lift(&node).await;
        }
        if let Some(board) = &self.options.board {
            board.finish(&node);
        }
        NodeDrainResult { node, result }
    }

    async fn try_one(&self, node: &str) -> Result<Option<Outcome>, DriverError> {
        if self.cancel.is_cancelled() {
            return Ok(None);
        }
        let mut leases = self.leases.clone();
        let mut take_over = self.options.take_over;
        let read = async |take_over| begin::read_start(&self.cluster, &self.options, take_over, node).await;
        let start = match read(take_over).await {
            Err(busy @ DriverError::Local(LocalError::Busy { .. })) => {
                match abandoned::find(&self.cluster, &self.options, node).await? {
                    FoundDrain::Abandoned(abandoned) => {
                        if (self.options.intent, abandoned.intent) == (Intent::Uncordon, Intent::Drain) {
                            abandoned.undo(&self.options, node).await?;
                        } else {
                            take_over = true;
                            leases.observed = abandoned.lease;
                        }
                        read(take_over).await?
                    }
                    FoundDrain::Ahead(ahead) => {
                        let behind = ahead.clone();
                        self.say(node, &FollowEvent::Queued { behind });
                        NodeAtDrainStart::behind(node, ahead)
                    }
                    FoundDrain::InTheWay => return Err(busy),
                }
            }
            start => start?,
        };
        // It would be a new drain that leaves the node's driver and its policies out.
        if self.options.take_over && self.options.intent == Intent::Drain && start.resume.is_none() {
            let node = node.to_owned();
            return Err(LocalError::NothingToTakeOver { node }.into());
        }
        let taken_over = start.resume.clone();
        if let Some(mark) = taken_over.as_ref().filter(|_| self.options.take_over) {
            tracing::info!(
                "node {node}: taking over {} {} once no other process holds the node's Lease",
                mark.trigger,
                mark.name
            );
        }
        let given_back = start.seen.as_ref().and_then(|node| node.checkpoint.clone());
        let factory = LocalDrainFactory::new(self, take_over, start);
        // Before the Lease is taken, which names the process that is gone: the same command with all flags must find it.
        factory.check_flags().await?;
        let runner = LeasedRunner {
            leases,
            node: node.to_owned(),
            factory,
        };
        let mut first = DrainOrders::default();
        if let Some(roll_back) = &self.options.roll_back {
            first.cancel(roll_back.reason.clone());
        }
        let (orders, current_orders) = watch::channel(first);
        let runner = runner.run(current_orders);
        tokio::pin!(runner);
        tokio::select! {
            outcome = &mut runner => {
                if let (Some(mark), Ok(Some(Outcome::Uncordoned { .. }))) = (given_back, &outcome) {
                    called_off::withdraw_ended(&self.cluster, node, &mark).await;
                }
                return outcome;
            }
            () = self.cancel.cancelled() => {}
        }
        let reason = "stopped at the command line".to_owned();
        orders.send_modify(|orders| orders.cancel(reason));
        let ended = runner.await;
        if let (Some(mark), Ok(Some(Outcome::Cancelled { .. }))) = (taken_over, &ended) {
            called_off::withdraw(&self.cluster, node, &mark).await;
        }
        ended
    }

    /// The request with this id; the one of the other process where this one continues its drain.
    pub(super) fn request(&self, own_id: &str, now: Time, start: &NodeAtDrainStart) -> Request {
        let request = self.new_request(own_id, now, &start.node);
        match &start.resume {
            Some(checkpoint) => Request {
                id: checkpoint.id.clone(),
                name: checkpoint.name.clone(),
                ..request
            },
            None => request,
        }
    }

    fn new_request(&self, id: &str, now: Time, node: &str) -> Request {
        let what = self.options.intent.name();
        Request {
            id: id.to_owned(),
            name: format!("{what}-{node}"),
            trigger: Trigger::Command.name().to_owned(),
            intent: self.options.intent,
            node: node.to_owned(),
            deadline: self.options.drain.time_limit.map(|timeout| now + timeout),
            settings: self.options.drain.engine.clone(),
            policies: self.session.infos(),
        }
    }

    /// Returns the nodes whose drains can begin now.
    async fn would_begin(&self, nodes: &[String]) -> Vec<String> {
        let clock = self.options.clock;
        let now = clock.now();
        let request = |node: &String| self.new_request(&new_id(now), now, node);
        let requests = nodes.iter().map(request).collect();
        plan_ahead::would_begin(&self.cluster, &self.session, clock, requests).await
    }

    async fn cordon_ahead(&self, nodes: &[String]) -> CordonsAhead {
        let now = self.options.clock.now();
        let say = |node: &str| self.say(node, &FollowEvent::CordonedFirst);
        CordonsAhead::make(&self.cluster, now, nodes, say).await
    }

    /// Prints what happens before the drain of the node begins.
    pub(super) fn say(&self, node: &str, what: &FollowEvent) {
        let now = self.options.clock.now();
        let lines = FollowOutput::begin(node.to_owned(), now).lines(self.options.format, now, what);
        let mut output = self.output(node)();
        for line in lines {
            let _written = writeln!(output, "{line}").is_ok();
        }
    }

    pub(super) fn reporter(&self, now: Time, request: &Request, resume: Option<&Checkpoint>) -> Reporter {
        let options = &self.options;
        let started = resume.map_or(now, |checkpoint| checkpoint.started);
        let output = self.output(&request.node);
        Reporter::lines(options.format, &output, now, started, request)
            .after(resume)
            .and_last()
            .and_cluster(self.cluster.clone(), request)
            .and_traces(self.traces.as_ref(), options.clock, request, resume)
            .and_board(options.board.clone(), now, request)
    }

    pub(super) fn output(&self, node: &str) -> Output {
        let output = Arc::clone(&self.options.output);
        if !self.many || self.options.format == Format::Json {
            return output;
        }
        let prefix = format!("{node}  ");
        Arc::new(move || Box::new(PrefixedWriter::new(prefix.clone(), output())))
    }
}

/// The id is one of [`new_id`].
pub(super) fn is_of_command(id: &str) -> bool {
    id.strip_prefix(Trigger::Command.name())
        .is_some_and(|rest| rest.starts_with('-'))
}

/// The id of a new request. Commands begin many in one millisecond, on many machines: random bits tell them apart.
pub(super) fn new_id(now: Time) -> String {
    let random = RandomState::new().hash_one(now.as_millis());
    format!("{}-{:x}-{random:016x}", Trigger::Command.name(), now.as_millis())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn requests_of_one_moment_have_ids_of_their_own() {
        let now = Time::from_millis(1_800_000_000_000);
        let ids: BTreeSet<String> = (0..1_000).map(|_| new_id(now)).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(
            ids.iter().all(|id| id.starts_with("command-1a3185c5000-")),
            "{ids:?}"
        );
        assert!(ids.iter().all(|id| is_of_command(id)), "{ids:?}");
        assert!(!is_of_command("5d0e8f0e-1111-4222-8333-444455556666"));
    }
}
