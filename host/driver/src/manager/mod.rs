//! Runs the drains that the triggers request, one at a time, and publishes their outcomes.
//!
//! It decides nothing else: the triggers decide which requests are valid, the engine decides what a drain does.

mod drain_factory;
pub(crate) mod drain_settings;
pub(crate) mod expired_wait;
pub(crate) mod resume_point;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Event, Intent, Outcome, Request, Time};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use crate::chain;
use crate::lease::{LeaseGuard, NodeLeases};
use crate::manager::drain_factory::DriverDrainFactory;
use crate::manager::drain_settings::DrainSettings;
use crate::reporter::Output;
use crate::runner::{ORDERS, RunnerDeps};
use scupper_common::clock::Clock;
use scupper_policy_reload::Catalogue;
use scupper_report::{Format, Metrics};
use scupper_triggers::{DrainCommand, DrainRequest, DriverState};

/// How long a drain may take to release its Lease when the driver stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// Runs one drain at a time; others wait in a queue.
pub(crate) struct DrainManager {
    deps: RunnerDeps,
    catalogue: Arc<Catalogue>,
    node: String,
    drain_settings: Arc<DrainSettings>,
    format: Format,
    output: Output,
    metrics: Metrics,
    driver_state: watch::Sender<DriverState>,
    leases: NodeLeases,
    current: Option<RunningDrain>,
    /// The last drain that ended here: later commands for it are ignored.
    ended: Option<String>,
    waiting: VecDeque<DrainRequest>,
    stopping: bool,
}

struct RunningDrain {
    id: String,
    /// The drain's own clock: the triggers' deadlines are translated to it.
    clock: Clock,
    orders: mpsc::Sender<Event>,
    drive: JoinHandle<Option<Outcome>>,
}

/// What a manager needs.
pub(crate) struct ManagerOptions {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) node: String,
    pub(crate) drain_settings: Arc<DrainSettings>,
    pub(crate) format: Format,
    pub(crate) output: Output,
    pub(crate) metrics: Metrics,
    pub(crate) driver_state: watch::Sender<DriverState>,
    pub(crate) leases: NodeLeases,
}

impl DrainManager {
    pub(crate) fn new(deps: RunnerDeps, options: ManagerOptions) -> Self {
        let ManagerOptions {
            catalogue,
            node,
            drain_settings,
            format,
            output,
            metrics,
            driver_state,
            leases,
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
            leases,
            current: None,
            ended: None,
            waiting: VecDeque::new(),
            stopping: false,
        }
    }

    /// Carries out a trigger's command.
    pub(crate) async fn execute(&mut self, command: DrainCommand) {
        match command {
            DrainCommand::Begin(drain_request) => self.begin(drain_request).await,
            DrainCommand::Deadline { id, deadline } => self.order(&id, Event::Deadline(deadline)).await,
            DrainCommand::Cancel { id, reason } => {
                self.waiting.retain(|drain_request| drain_request.id != id);
                self.order(&id, Event::Cancel { reason }).await;
            }
            DrainCommand::Lost { id, reason } => self.lost(id, reason).await,
        }
    }

    /// Waits until the running drain has ended; for ever if there is none.
    pub(crate) async fn ended(&mut self) -> Result<Option<Outcome>, JoinError> {
        match &mut self.current {
            Some(current) => (&mut current.drive).await,
            None => std::future::pending().await,
        }
    }

    /// The running drain has ended: publishes its outcome and begins the next one.
    pub(crate) async fn close(&mut self, outcome: Option<Outcome>) {
        let Some(current) = self.current.take() else {
            return;
        };
        self.ended = Some(current.id.clone());
        match outcome {
            Some(outcome) => {
                let ended = DriverState::Ended {
                    id: current.id,
                    outcome,
                };
                self.driver_state.send_replace(ended);
            }
            None => {
                self.driver_state.send_replace(DriverState::Idle);
            }
        }
        if let Some(next) = self.waiting.pop_front() {
            self.begin(next).await;
        }
    }

    /// The driver is about to stop: nothing new begins, and no further pod is evicted.
    pub(crate) async fn pause(&mut self) {
        self.stopping = true;
        self.waiting.clear();
        if let Some(current) = &self.current {
            current.orders.send(Event::Pause).await.unwrap_or_default();
        }
    }

    /// The driver stops now: releases the Lease, so that its successor need not wait.
    pub(crate) async fn leave(mut self) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        drop(current.orders);
        if timeout(FAREWELL, &mut current.drive).await.is_err() {
            current.drive.abort();
        }
    }

    async fn begin(&mut self, drain_request: DrainRequest) {
        if self.stopping {
            return;
        }
        match &self.current {
            Some(current) if current.id == drain_request.id => {}
            Some(_) => {
                if self.waiting.iter().all(|waiting| waiting.id != drain_request.id) {
                    tracing::info!(
                        drain_request = drain_request.name,
                        "another drain of this node is under way; this one waits"
                    );
                    self.waiting.push_back(drain_request);
                }
            }
            None => self.start(&drain_request, None),
        }
    }

    /// The request ended elsewhere. If another process left its drain on the node, this one completes it; until the Lease
    /// is ours, only its id is known.
    async fn lost(&mut self, id: String, reason: String) {
        self.waiting.retain(|drain_request| drain_request.id != id);
        if self.current.is_none() && self.ended.as_ref() != Some(&id) {
            let drain_request = DrainRequest {
                name: id.clone(),
                id,
                trigger: String::new(),
                intent: Intent::Drain,
                deadline: None,
                flags: None,
            };
            self.start(&drain_request, Some(Event::Lost { reason }));
        } else {
            self.order(&id, Event::Lost { reason }).await;
        }
    }

    async fn order(&self, id: &str, order: Event) {
        let Some(current) = self.current.as_ref().filter(|current| current.id == id) else {
            return;
        };
        let order = match order {
            Event::Deadline(deadline) => Event::Deadline(self.on_line_of(&current.clock, deadline)),
            order => order,
        };
        // A drain that has ended takes no orders; its outcome follows.
        current.orders.send(order).await.unwrap_or_default();
    }

    /// A trigger's deadline by the clock of a drain.
    fn on_line_of(&self, clock: &Clock, deadline: Option<Time>) -> Option<Time> {
        deadline.map(|deadline| clock.moment_of(&self.deps.clock, deadline))
    }

    /// `end`: the request has ended already, and this order completes what it left on the node.
    fn start(&mut self, drain_request: &DrainRequest, end: Option<Event>) {
        let begun = self.drain_settings.now().with(drain_request.flags.as_deref());
        let leases = NodeLeases {
            forbidden_timeout: begun.settings.forbidden_timeout.into(),
            ..self.leases.clone()
        };
        let clock = self.deps.clock.anchored();
        let request = Request {
            id: drain_request.id.clone(),
            name: drain_request.name.clone(),
            trigger: drain_request.trigger.clone(),
            intent: drain_request.intent,
            node: self.node.clone(),
            deadline: self.on_line_of(&clock, drain_request.deadline),
            settings: begun.settings,
            policies: Vec::new(),
        };
        let (orders, inbox) = mpsc::channel(ORDERS);
        let mut deps = self.deps.clone();
        deps.clock = clock;
        deps.cluster = deps.cluster.with_eviction_timeout(begun.eviction_timeout);
        let guard = LeaseGuard {
            leases,
            node: self.node.clone(),
            factory: DriverDrainFactory {
                deps,
                catalogue: Arc::clone(&self.catalogue),
                request,
                since: clock.now(),
                only_end: end.is_some(),
                format: self.format,
                output: Arc::clone(&self.output),
                metrics: self.metrics.clone(),
                followed: drain_request.flags.is_some(),
            },
            orders: end.into_iter().collect(),
        };
        let drive = tokio::spawn(async move {
            match guard.run(inbox).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    let message = chain(&error);
                    tracing::warn!(message, "could not start the drain");
                    Some(Outcome::Failed { message })
                }
            }
        });
        self.driver_state.send_replace(DriverState::Running {
            id: drain_request.id.clone(),
        });
        self.current = Some(RunningDrain {
            id: drain_request.id.clone(),
            clock,
            orders,
            drive,
        });
    }
}

impl Drop for DrainManager {
    fn drop(&mut self) {
        if let Some(current) = &self.current {
            current.drive.abort();
        }
    }
}
