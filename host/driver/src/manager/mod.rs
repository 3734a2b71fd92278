//! Runs the drains that the triggers request, one at a time, and publishes their outcomes.
//!
//! It decides nothing else: the triggers decide which requests are valid, the engine decides what a drain does.

mod drain_factory;
pub(crate) mod drain_settings;
pub(crate) mod expired_wait;
pub(crate) mod resume_point;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Intent, Outcome, Request, Time, Trigger};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::chain;
use crate::manager::drain_factory::DriverDrainFactory;
use crate::manager::drain_settings::DrainSettingsSource;
use crate::manager::resume_point::LeftDrain;
use crate::manager::waiting::{Turn, WaitingRequests};
use scupper_common::clock::Clock;
use scupper_common::tasks::TaskEnded;
use scupper_lease::NodeLeases;
use scupper_metrics::Metrics;
use scupper_policy_reload::Catalogue;
use scupper_report::Format;
use scupper_runner::RunnerDeps;
use scupper_runner::last_known::LastKnown;
use scupper_runner::leased_runner::LeasedRunner;
use scupper_runner::orders::DrainOrders;
use scupper_runner::reporter::Output;
use scupper_triggers::{DrainCommand, DrainReport, DrainReportSender, DriverState, TriggerRequest};

/// How long a drain may take to release its Lease when the driver stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// Runs one drain at a time; others wait in a queue.
pub(crate) struct DrainManager {
    deps: RunnerDeps,
    catalogue: Arc<Catalogue>,
    node: String,
    drain_settings: Arc<DrainSettingsSource>,
    format: Format,
    output: Output,
    metrics: Metrics,
    driver_state: watch::Sender<DriverState>,
    reports: DrainReportSender,
    leases: NodeLeases,
    current: Option<RunningDrain>,
    /// The last drain that ended here: later commands for it are ignored.
    ended: Option<String>,
    waiting: WaitingRequests,
    left: LeftDrain,
    stopping: bool,
}

struct RunningDrain {
    id: String,
    /// The request names its pods.
    partial: bool,
    /// The drain's own clock: the triggers' deadlines are translated to it.
    clock: Clock,
    orders: watch::Sender<DrainOrders>,
    task: JoinHandle<Option<Outcome>>,
}

/// What a manager needs.
pub(crate) struct DrainManagerOptions {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) node: String,
    pub(crate) drain_settings: Arc<DrainSettingsSource>,
    pub(crate) format: Format,
    pub(crate) output: Output,
    pub(crate) metrics: Metrics,
    pub(crate) driver_state: watch::Sender<DriverState>,
    /// Receives what becomes of every drain.
    pub(crate) reports: DrainReportSender,
    pub(crate) leases: NodeLeases,
    /// What a former process left on the node.
    pub(crate) left: LeftDrain,
}

impl DrainManager {
    pub(crate) fn new(deps: RunnerDeps, options: DrainManagerOptions) -> Self {
        let DrainManagerOptions {
            catalogue,
            node,
            drain_settings,
            format,
            output,
            metrics,
            driver_state,
            reports,
            leases,
            left,
        } = options;
        Self {
            deps,
            catalogue,
            node,
            drain_settings,
            format,
            output,
            metrics,
            driver_state,
            reports,
            leases,
            current: None,
            ended: None,
            waiting: WaitingRequests::default(),
            left,
            stopping: false,
        }
    }

    /// Carries out a trigger's command.
    pub(crate) fn execute(&mut self, command: DrainCommand) {
        match command {
            DrainCommand::Begin(trigger_request) => self.begin(trigger_request),
            DrainCommand::Deadline { id, deadline } => {
                self.waiting.move_deadline(&id, deadline);
                self.move_deadline(&id, deadline);
            }
            DrainCommand::Cancel { id, reason } => {
                if self.waiting.remove(&id) {
                    let outcome = Some(Outcome::Cancelled { reason });
                    self.reports.send(&DrainReport::Ended {
                        id,
                        outcome,
                        // It has drained no pod at all.
                        partial: false,
                    });
                } else {
                    self.order(&id, |orders| orders.cancel(reason));
                }
            }
            DrainCommand::Lost { id, reason } => self.lost(id, reason),
        }
    }

    /// Waits until the running drain has ended; for ever if there is none.
    pub(crate) async fn ended(&mut self) -> Result<Option<Outcome>, TaskEnded> {
        let Some(current) = &mut self.current else {
            return std::future::pending().await;
        };
        let ended = (&mut current.task).await;
        ended.map_err(|error| {
            self.current = None;
            TaskEnded::of("drain", error)
        })
    }

    /// The running drain has ended: publishes its outcome and begins the next one.
    pub(crate) fn close(&mut self, outcome: Option<Outcome>) {
        let Some(current) = self.current.take() else {
            return;
        };
        self.ended = Some(current.id.clone());
        // Before the state, so that a trigger knows of the end when it sees what the driver does next.
        self.reports.send(&DrainReport::Ended {
            id: current.id,
            outcome,
            partial: current.partial,
        });
        self.driver_state.send_replace(DriverState::Idle);
        if let Some(next) = self.waiting.next() {
            self.begin(next);
        }
    }

    /// The driver is about to stop: nothing new begins, and no further pod is evicted.
    pub(crate) fn pause(&mut self) {
        self.stopping = true;
        self.waiting.clear();
        if let Some(current) = &self.current {
            current.orders.send_modify(DrainOrders::pause);
        }
    }

    /// The driver stops now: releases the Lease, so that its successor need not wait.
    pub(crate) async fn leave(mut self) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        drop(current.orders);
        if timeout(FAREWELL, &mut current.task).await.is_err() {
            current.task.abort();
        }
    }

    fn begin(&mut self, trigger_request: TriggerRequest) {
        if self.stopping {
            return;
        }
        let name = trigger_request.name.clone();
        let left = self.left_first();
        let current = self.current.as_ref().map(|current| current.id.as_str());
        match self.waiting.admit(trigger_request, current, left.as_deref()) {
            Turn::Now(trigger_request) => self.start(&trigger_request, None),
            Turn::Known => {}
            Turn::Later => tracing::info!(
                request = name,
                "another drain of this node is under way; this one waits"
            ),
        }
    }

    /// The id of the drain that a former process left on the node, if a trigger of this one goes on with it or drops it.
    fn left_first(&self) -> Option<String> {
        let left = self.left.mark_so_far().filter(resume_point::goes_first);
        left.map(|left| left.id)
    }

    /// The request ended elsewhere. If another process left its drain on the node, this one completes it; until the Lease
    /// is ours, only its id is known.
    fn lost(&mut self, id: String, reason: String) {
        self.waiting.remove(&id);
        let left = self.left_first();
        self.waiting.settle(&id, left.as_deref());
        if self.current.is_none() && self.ended.as_ref() != Some(&id) {
            let trigger_request = TriggerRequest {
                name: id.clone(),
                id,
                trigger: String::new(),
                intent: Intent::Drain,
                deadline: None,
                flags: None,
                only_pods: None,
            };
            self.start(&trigger_request, Some(DrainOrders::ended_elsewhere(reason)));
        } else {
            self.order(&id, |orders| orders.lose(reason));
        }
    }

    fn order(&self, id: &str, order: impl FnOnce(&mut DrainOrders)) {
        if let Some(current) = self.current.as_ref().filter(|current| current.id == id) {
            current.orders.send_modify(order);
        }
    }

    fn move_deadline(&self, id: &str, deadline: Option<Time>) {
        let Some(clock) = self.current.as_ref().map(|current| current.clock) else {
            return;
        };
        // The trigger read its clock before, so a deadline that it ended at once is not after this.
        let now = clock.moment_of(&self.deps.clock, self.deps.clock.now());
        let deadline = self.on_line_of(&clock, deadline);
        self.order(id, |orders| orders.move_deadline(deadline, now));
    }

    /// A trigger's deadline by the clock of a drain.
    fn on_line_of(&self, clock: &Clock, deadline: Option<Time>) -> Option<Time> {
        deadline.map(|deadline| clock.moment_of(&self.deps.clock, deadline))
    }

    /// `end`: the request has ended already, and these orders complete what it left on the node.
    fn start(&mut self, trigger_request: &TriggerRequest, end: Option<DrainOrders>) {
        let mut settings = self.drain_settings.now(Trigger::of(&trigger_request.trigger));
        if let Some(requested) = &trigger_request.flags {
            settings = settings.with_request(&requested.flags);
        }
        settings
            .engine
            .filters
            .only_pods
            .clone_from(&trigger_request.only_pods);
        let leases = NodeLeases {
            forbidden_timeout: settings.engine.forbidden_timeout,
            ..self.leases.clone()
        };
        let clock = self.deps.clock.anchored();
        let request = Request {
            id: trigger_request.id.clone(),
            name: trigger_request.name.clone(),
            trigger: trigger_request.trigger.clone(),
            intent: trigger_request.intent,
            node: self.node.clone(),
            deadline: self.on_line_of(&clock, trigger_request.deadline),
            settings: settings.engine,
            // Those that the drain will have, as far as is known before it resumes: the Lease names them.
            policies: self.catalogue.session().infos(),
        };
        let only_end = end.is_some();
        let (orders, current_orders) = watch::channel(end.unwrap_or_default());
        let mut deps = self.deps.clone();
        deps.clock = clock;
        deps.cluster = deps.cluster.with_eviction_timeout(settings.eviction_timeout);
        let runner = LeasedRunner {
            leases,
            node: self.node.clone(),
            factory: DriverDrainFactory {
                deps,
                catalogue: Arc::clone(&self.catalogue),
                request,
                since: clock.now(),
                only_end,
                format: self.format,
                output: Arc::clone(&self.output),
                metrics: self.metrics.clone(),
                reports: self.reports.clone(),
                followed: trigger_request.flags.is_some(),
                is_started: false,
                last_known: LastKnown::default(),
            },
        };
        let task = tokio::spawn(async move {
            match runner.run(current_orders).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    let message = chain(&error);
                    tracing::warn!(message, "could not start the drain");
                    Some(Outcome::Failed { message })
                }
            }
        });
        self.driver_state.send_replace(DriverState::Running {
            id: trigger_request.id.clone(),
            what: resume_point::what(&trigger_request.trigger, &trigger_request.name),
        });
        self.current = Some(RunningDrain {
            id: trigger_request.id.clone(),
            partial: trigger_request.only_pods.is_some(),
            clock,
            orders,
            task,
        });
    }
}

impl Drop for DrainManager {
    fn drop(&mut self) {
        if let Some(current) = &self.current {
            current.task.abort();
        }
    }
}
