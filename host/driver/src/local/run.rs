//! Drains several nodes, one after another or some at once, each with an engine of its own.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::{Checkpoint, Intent, Notice, Outcome, Phase, Request, Summary, Time, Trigger, Uid};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::LocalOptions;
use super::abandoned;
use super::begin::{self, BegunDrain, NodeAtDrainStart};
use super::cordon_ahead::CordonsAhead;
use super::{nodes, own_flags};
use crate::manager::expired_wait::end_of_waiting;
use crate::occupancy::LocalError;
use crate::reporter::policy_messages::PolicyMessages;
use crate::reporter::{Output, Reporter};
use crate::runner::last_known::{DrainEnd, LastKnown};
use crate::runner::leased_runner::{CreatedDrain, DrainFactory, LeasedRunner};
use crate::runner::orders::DrainOrders;
use crate::runner::out_of_service;
use crate::runner::{EngineRunner, RunnerDeps};
use crate::{DriverError, policies};
use scupper_cluster::{Cluster, ConnectOptions};
use scupper_common::clock::Clock;
use scupper_common::health::Health;
use scupper_lease::LeaseRecord;
use scupper_lease::{HolderIdentity, NodeLeases};
use scupper_metrics::Metrics;
use scupper_policy_reload::Session;
use scupper_report::{FollowEvent, FollowOutput, Format};
use scupper_screen::PrefixedWriter;
use scupper_traces::Traces;

/// A person waits no longer than this for a Lease that is refused, if the API server does not say that it always will be:
/// a user of `kubectl drain` often has no right to Leases.
const LEASE_FORBIDDEN: Duration = Duration::from_secs(10);

/// Nor does a person wait longer than this for a refused read that the drain can do without; it is tried again later.
const REFUSED_READS: Duration = Duration::from_secs(1);

/// How long after its deadline a drain whose Lease was lost waits for it, to roll back.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(30);

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
    if drains.many && drains.options.cordon_first && drains.options.intent == Intent::Drain {
        let now = drains.options.clock.now();
        let say = |node: &str| drains.say_cordoned_first(now, node);
        drains.ahead = Some(CordonsAhead::make(&drains.cluster, now, &names, say).await);
    }
    let drains = drains;
    // Whichever has ended, the next node takes its place; results are reported in the order in which the nodes were named.
    let ended = stream::iter(names.into_iter().enumerate())
        .map(async |(place, name)| (place, drains.one(name).await))
        .buffer_unordered(drains.options.parallel.max(1))
        .collect::<BTreeMap<_, _>>();
    tokio::pin!(ended, stop);
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

struct LocalDrains {
    /// More than one node: lines say which.
    many: bool,
    cluster: Cluster,
    session: Arc<Session>,
    policy_messages: PolicyMessages,
    options: LocalOptions,
    traces: Option<Traces>,
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
                let abandoned = abandoned::find(&self.cluster, &self.options, node).await?;
                let abandoned = abandoned.ok_or(busy)?;
                if (self.options.intent, abandoned.intent) == (Intent::Uncordon, Intent::Drain) {
                    abandoned.undo(&self.options, node).await?;
                } else {
                    take_over = true;
                    leases.observed = abandoned.lease;
                }
                read(take_over).await?
            }
            start => start?,
        };
        let since = self.options.clock.now();
        let own_id = new_id(since);
        let request = self.request(&own_id, since, &start);
        let factory = LocalDrainFactory {
            drains: self,
            take_over,
            start,
            request,
            own_id,
            since,
            begun: false,
            last_known: LastKnown::default(),
        };
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
            outcome = &mut runner => return outcome,
            () = self.cancel.cancelled() => {}
        }
        let reason = "stopped at the command line".to_owned();
        orders.send_modify(|orders| orders.cancel(reason));
        runner.await
    }

    /// The request with this id; the one of the other process where this one continues its drain.
    fn request(&self, own_id: &str, now: Time, start: &NodeAtDrainStart) -> Request {
        let what = match self.options.intent {
            Intent::Drain => "drain",
            Intent::Uncordon => "uncordon",
        };
        let (id, name) = match &start.resume {
            Some(checkpoint) => (checkpoint.id.clone(), checkpoint.name.clone()),
            None => (own_id.to_owned(), format!("{what}-{}", start.node)),
        };
        Request {
            id,
            name,
            trigger: Trigger::Command.name().to_owned(),
            intent: self.options.intent,
            node: start.node.clone(),
            deadline: self.options.drain.time_limit.map(|timeout| now + timeout),
            settings: self.options.drain.engine.clone(),
            policies: self.session.infos(),
        }
    }

    fn say_cordoned_first(&self, now: Time, node: &str) {
        let lines = FollowOutput::begin(node.to_owned(), now).lines(
            self.options.format,
            now,
            &FollowEvent::CordonedFirst,
        );
        let mut output = self.output(node)();
        for line in lines {
            let _written = writeln!(output, "{line}").is_ok();
        }
    }

    fn reporter(&self, now: Time, request: &Request, resume: Option<&Checkpoint>) -> Reporter {
        let options = &self.options;
        let started = resume.map_or(now, |checkpoint| checkpoint.started);
        let output = self.output(&request.node);
        Reporter::lines(options.format, &output, now, started, request)
            .and_last()
            .and_cluster(self.cluster.clone(), request)
            .and_traces(self.traces.as_ref(), options.clock, request, resume)
            .and_board(options.board.clone(), now, request)
    }

    fn output(&self, node: &str) -> Output {
        let output = Arc::clone(&self.options.output);
        if !self.many || self.options.format == Format::Json {
            return output;
        }
        let prefix = format!("{node}  ");
        Arc::new(move || Box::new(PrefixedWriter::new(prefix.clone(), output())))
    }
}

impl LocalDrainFactory<'_> {
    /// The policies that took part in the drain that this process continues, and that are not loaded here, or only as a shadow.
    fn absent(&self) -> Vec<String> {
        let named = self.start.resume.as_ref().map(Checkpoint::left_to_undo);
        let is_here = |name: &str| self.request.policies.iter().any(|policy| policy.name == name);
        let named = named.into_iter().flat_map(BTreeMap::into_keys);
        named.filter(|name| !is_here(name)).collect()
    }

    /// The engine that begins the drain, or continues it from its mark.
    fn runner(&mut self, now: Time, request: Request, lease: &LeaseRecord) -> EngineRunner {
        let drains = self.drains;
        let resume = self.start.resume.clone();
        if let Some(mark) = &resume {
            self.last_known.resume(mark);
        }
        let reporter = drains.reporter(now, &request, resume.as_ref());
        let deps = RunnerDeps {
            cluster: drains.cluster.clone(),
            clock: drains.options.clock,
            health: Health::default(),
            watched_node: None,
            policy_messages: drains.policy_messages.clone(),
            traces: drains.traces.clone(),
            recordings: drains.options.recordings.clone(),
        };
        let request = out_of_service::planned(request, self.start.seen.as_ref());
        let session = Arc::clone(&drains.session);
        EngineRunner::new(deps, session, request, resume, reporter)
            .and_node(self.start.seen.take())
            .and_lease(lease.clone())
            .and_last_known(self.last_known.clone())
    }

    /// The drain has ended while this process did not hold the Lease: the outcome, which is reported unless that is done.
    fn over(&self, end: &DrainEnd, orders: &DrainOrders) -> Outcome {
        let outcome = end.outcome(orders, &self.request.node);
        if !end.is_reported {
            let summary = Summary {
                started: self.since,
                ended: self.drains.options.clock.now(),
                ..Summary::default()
            };
            self.report_end(&outcome, summary);
        }
        outcome
    }

    /// Reports the end of a drain that no engine runs. The conditions belong to the process that drains.
    fn report_end(&self, outcome: &Outcome, summary: Summary) {
        let (now, request) = (summary.ended, &self.request);
        let output = self.drains.output(&request.node);
        let format = self.drains.options.format;
        let mut reporter = Reporter::lines(format, &output, now, self.since, request);
        let outcome = outcome.clone();
        reporter.on_notice(now, request, &Notice::Finished { outcome, summary });
    }

    /// The drain of another process is continued with the flags of this command.
    async fn check_flags(&self) -> Result<(), DriverError> {
        let LocalDrains { cluster, options, .. } = self.drains;
        let mark = self.start.resume.as_ref();
        let continues = !self.begun && options.roll_back.is_none();
        let Some(mark) = mark.filter(|mark| continues && mark.intent == Intent::Drain) else {
            return Ok(());
        };
        let now = options.clock.now();
        own_flags::check(cluster, &self.start.node, mark, &options.drain, now).await
    }

    /// A policy that is not loaded here cannot undo its part. The engine refuses an uncordon without it.
    fn check_absent(&self) -> Result<(), LocalError> {
        let (node, policies) = (&self.request.node, self.absent());
        if self.drains.options.roll_back.is_some() && !policies.is_empty() {
            let node = node.clone();
            return Err(LocalError::PoliciesAbsent { node, policies });
        }
        for policy in policies.iter().filter(|_| self.request.intent == Intent::Drain) {
            tracing::warn!(
                "node {node}: policy {policy} took part in the drain and is not active here, so it does not continue \
                 its hooks; run this with --config scupper.yaml"
            );
        }
        Ok(())
    }
}

/// Creates the drain of one node.
struct LocalDrainFactory<'a> {
    drains: &'a LocalDrains,
    /// It continues what another process has begun.
    take_over: bool,
    start: NodeAtDrainStart,
    request: Request,
    /// The id of a drain that continues no other: the Lease names it before the drain is created.
    own_id: String,
    /// When the command asked for it.
    since: Time,
    begun: bool,
    /// What the engine of this process knew when the Lease was lost.
    last_known: LastKnown,
}

impl DrainFactory for LocalDrainFactory<'_> {
    async fn create(
        &mut self,
        orders: &DrainOrders,
        lease: &LeaseRecord,
    ) -> Result<CreatedDrain, DriverError> {
        let LocalDrains { cluster, options, .. } = self.drains;
        // The previous holder of the Lease has written to the node.
        let own = self.begun.then_some(BegunDrain {
            id: &self.request.id,
            last_known: &self.last_known,
        });
        self.start = begin::look_again(
            cluster,
            (options, self.take_over),
            &self.start.node,
            own,
            lease.is_held,
        )
        .await?;
        if let Some(end) = &self.start.ended {
            return Ok(CreatedDrain::Over(Some(self.over(end, orders))));
        }
        if !self.begun {
            // Only now it is known which drain to continue. Its time runs since the command asked for it.
            self.request = self.drains.request(&self.own_id, self.since, &self.start);
        }
        self.check_absent()?;
        if options.roll_back.is_some() && self.start.resume.is_none() {
            return Ok(CreatedDrain::Over(orders.called_off()));
        }
        self.check_flags().await?;
        self.begun = true;
        let (now, request) = (options.clock.now(), self.request.clone());
        self.start
            .adopt(cluster, &request.policies, |node| mark(node, now, &request))
            .await?;
        Ok(CreatedDrain::Runner(Box::new(self.runner(now, request, lease))))
    }

    fn request(&self) -> &Request {
        &self.request
    }

    fn clock(&self) -> Clock {
        self.drains.options.clock
    }

    fn has_begun(&self) -> bool {
        self.begun || self.start.resume.is_some()
    }

    /// A drain that has begun is rolled back if the Lease comes back in time; another process's drain is its own.
    fn wait_after_deadline(&self) -> Option<Duration> {
        Some(if self.begun {
            PUT_BACK_WITHIN
        } else {
            Duration::ZERO
        })
    }

    async fn deadline_passed(&self) -> Outcome {
        let LocalDrains { cluster, options, .. } = self.drains;
        let (node, request) = (&self.request.node, &self.request);
        tracing::warn!("node {node}: the deadline passed while another process was at work there");
        let (outcome, summary) = end_of_waiting(cluster, options.clock, request, self.since).await;
        self.report_end(&outcome, summary);
        outcome
    }

    fn waiting_for(&self, holder: &str) {
        let node = &self.request.node;
        if let Some(board) = &self.drains.options.board {
            let words = format!("standing by: {holder} holds the node's Lease");
            board.begin(node, self.drains.options.clock.now(), &words);
        }
        tracing::warn!("node {node}: standing by: {holder} holds the node's Lease");
    }
}

/// The id of a new request. Commands begin many in one millisecond, on many machines: random bits tell them apart.
pub(super) fn new_id(now: Time) -> String {
    let random = RandomState::new().hash_one(now.as_millis());
    format!("{}-{:x}-{random:016x}", Trigger::Command.name(), now.as_millis())
}

/// The checkpoint of a request that has done nothing but make the node's cordon its own.
fn mark(node: Uid, now: Time, request: &Request) -> Checkpoint {
    Checkpoint {
        id: request.id.clone(),
        name: request.name.clone(),
        trigger: request.trigger.clone(),
        intent: request.intent,
        phase: Phase::Finished,
        own_cordon: true,
        ..Checkpoint::blank(node, now)
    }
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
    }
}
