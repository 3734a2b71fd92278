//! The nodes, one after another or some at once, each with a drive of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::{Checkpoint, Event, Intent, Outcome, Phase, Request, Time};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::begin::{self, Job};
use super::{LocalOptions, TRIGGER};
use crate::app::drive::{Drive, Tools};
use crate::app::lease::{Begin, Guard, Holder, Seats};
use crate::app::reporter::{Output, Reporter};
use crate::app::{AppError, nodes, policies};
use crate::cluster::{Cluster, ConnectOptions};
use crate::policy::Session;
use crate::report::{Format, Health, Metrics, Prefixed, Traces};

/// A person waits no longer than this for a lease that is refused: a user of `kubectl drain` often has no right to
/// leases.
const LEASE_FORBIDDEN: Duration = Duration::from_secs(10);
/// Orders that may wait for a drive.
const ORDERS: usize = 4;

/// What became of a node.
#[derive(Debug)]
pub struct Ended {
    /// The node.
    pub node: String,
    /// `None`: it was not begun any more. An error: it could not be begun.
    pub result: Result<Option<Outcome>, AppError>,
}

/// Deals with all the nodes. A node at which it fails does not keep the others from it. When `stop` comes true, what
/// is under way is cancelled and nothing more is begun.
pub async fn run(options: LocalOptions, stop: impl Future<Output = ()>) -> Result<Vec<Ended>, AppError> {
    let connect = ConnectOptions {
        kubeconfig: options.kubeconfig.clone(),
        eviction_timeout: options.eviction_timeout,
        page_size: options.page_size,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(AppError::Connect)?;
    let names = nodes::resolve(&cluster, &options.nodes).await?;
    if let Some(board) = &options.board {
        board.expect(names.len());
    }
    let compiler = options.compiler.clone();
    let loaded = policies::load(&options.policies, compiler, options.clock, &cluster).await?;
    // Nobody asks a terminal for metrics.
    let metrics = Metrics::new();
    let traces = options.traces.as_ref();
    let traces = traces.map(|settings| Traces::start(settings, &metrics));
    let traces = traces.transpose().map_err(AppError::Traces)?;
    let runner = Runner {
        many: names.len() > 1,
        session: Arc::new(Session::fixed(loaded.policies)),
        cancel: CancellationToken::new(),
        seats: Seats {
            cluster: cluster.clone(),
            namespace: options.lease_namespace.clone(),
            own: Holder::own(options.settings.own_pod.as_ref()),
            forbidden_timeout: LEASE_FORBIDDEN.min(options.settings.forbidden_timeout.into()),
        },
        cluster,
        options,
        traces,
    };
    // Whichever has ended, the next node takes its place; results are reported in the order in which the nodes were named.
    let ended = stream::iter(names.into_iter().enumerate())
        .map(async |(place, name)| (place, runner.one(name).await))
        .buffer_unordered(runner.options.parallel.max(1))
        .collect::<BTreeMap<_, _>>();
    tokio::pin!(ended, stop);
    loop {
        tokio::select! {
            ended = &mut ended => {
                if let Some(traces) = &runner.traces {
                    traces.close().await;
                }
                return Ok(ended.into_values().collect());
            }
            () = &mut stop, if !runner.cancel.is_cancelled() => runner.cancel.cancel(),
        }
    }
}

struct Runner {
    /// More than one node: lines say which.
    many: bool,
    cluster: Cluster,
    session: Arc<Session>,
    options: LocalOptions,
    traces: Option<Traces>,
    cancel: CancellationToken,
    seats: Seats,
}

impl Runner {
    async fn one(&self, node: String) -> Ended {
        let result = self.try_one(&node).await;
        if let Some(board) = &self.options.board {
            board.over(&node);
        }
        Ended { node, result }
    }

    async fn try_one(&self, node: &str) -> Result<Option<Outcome>, AppError> {
        if self.cancel.is_cancelled() {
            return Ok(None);
        }
        let job = begin::look(&self.cluster, &self.options, node).await?;
        let request = self.request(self.options.clock.now(), &job);
        let guard = Guard {
            seats: self.seats.clone(),
            node: node.to_owned(),
            begin: Opening {
                runner: self,
                job,
                request,
                begun: false,
            },
        };
        let (orders, inbox) = mpsc::channel(ORDERS);
        let guard = guard.run(inbox);
        tokio::pin!(guard);
        tokio::select! {
            outcome = &mut guard => return outcome,
            () = self.cancel.cancelled() => {}
        }
        let reason = "stopped at the command line".to_owned();
        // A drive that is over takes no orders.
        orders.send(Event::Cancel { reason }).await.unwrap_or_default();
        guard.await
    }

    /// The same wish again where another process has begun with it.
    fn request(&self, now: Time, job: &Job) -> Request {
        let what = match self.options.intent {
            Intent::Drain => "drain",
            Intent::Uncordon => "uncordon",
        };
        let (id, name) = match &job.resume {
            Some(checkpoint) => (checkpoint.id.clone(), checkpoint.name.clone()),
            None => (
                format!("{TRIGGER}-{:x}-{:x}", now.as_millis(), std::process::id()),
                format!("{what}-{}", job.node),
            ),
        };
        Request {
            id,
            name,
            trigger: TRIGGER.to_owned(),
            intent: self.options.intent,
            node: job.node.clone(),
            deadline: self.options.timeout.map(|timeout| now + timeout.into()),
            settings: self.options.settings.clone(),
            policies: self.session.infos(),
        }
    }

    fn output(&self, node: &str) -> Output {
        let output = Arc::clone(&self.options.output);
        if !self.many || self.options.format == Format::Json {
            return output;
        }
        let prefix = format!("{node}  ");
        Arc::new(move || Box::new(Prefixed::new(prefix.clone(), output())))
    }
}

/// How one node is begun.
struct Opening<'a> {
    runner: &'a Runner,
    job: Job,
    request: Request,
    begun: bool,
}

impl Begin for Opening<'_> {
    async fn begin(&mut self, again: bool) -> Result<Drive, AppError> {
        let Runner {
            cluster,
            options,
            session,
            traces,
            ..
        } = self.runner;
        if again {
            let own = self.begun.then_some(self.request.id.as_str());
            self.job = begin::look_again(cluster, options, &self.job.node, own).await?;
        }
        self.begun = true;
        let (now, request) = (options.clock.now(), self.request.clone());
        self.job.adopt(cluster, || mark(now, &request)).await?;
        let resume = self.job.resume.clone();
        let started = resume.as_ref().map_or(now, |checkpoint| checkpoint.started);
        let output = self.runner.output(&request.node);
        let reporter = Reporter::lines(options.format, &output, now, started, &request)
            .and_cluster(cluster.clone(), &request)
            .and_traces(traces.as_ref(), options.clock, &request, resume.as_ref())
            .and_board(options.board.clone(), now, &request);
        let tools = Tools {
            cluster: cluster.clone(),
            clock: options.clock,
            health: Health::default(),
            own_node: None,
            traces: traces.clone(),
        };
        Ok(Drive::new(tools, Arc::clone(session), request, resume, reporter))
    }

    fn has_begun(&self) -> bool {
        self.begun || self.job.resume.is_some()
    }

    fn stands_by(&self, holder: &str) {
        let node = &self.request.node;
        if let Some(board) = &self.runner.options.board {
            let words = format!("standing by: {holder} is at work there");
            board.begin(node, self.runner.options.clock.now(), &words);
        }
        tracing::warn!("node {node}: standing by: {holder} is at work there");
    }
}

/// What stands on a node for a request that has done nothing else.
fn mark(now: Time, request: &Request) -> Checkpoint {
    Checkpoint {
        node: None,
        id: request.id.clone(),
        name: request.name.clone(),
        trigger: request.trigger.clone(),
        phase: Phase::Finished,
        started: now,
        deadline: None,
        own_cordon: false,
        inherited: false,
        drained: false,
        cancelled: None,
        hooks: Vec::new(),
        done: Vec::new(),
        returns: BTreeMap::new(),
        stays: std::collections::BTreeSet::new(),
    }
}
