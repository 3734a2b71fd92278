//! The desk where wishes arrive: one drain at a time, begun, ended and answered for.
//!
//! It holds no policy of its own: which wish is valid is the door's business, what a drain does the engine's.

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

/// How long a drain may take to let go when the driver stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// One drain at a time.
pub(crate) struct DrainManager {
    deps: RunnerDeps,
    catalogue: Arc<Catalogue>,
    node: String,
    drain_settings: Arc<DrainSettings>,
    format: Format,
    output: Output,
    metrics: Metrics,
    standing: watch::Sender<DriverState>,
    leases: NodeLeases,
    current: Option<RunningDrain>,
    /// The last drain that came to an end here: whatever is said of it later comes too late.
    ended: Option<String>,
    waiting: VecDeque<DrainRequest>,
    stopping: bool,
}

struct RunningDrain {
    id: String,
    /// The drain's own: what the doors say is translated.
    clock: Clock,
    orders: mpsc::Sender<Event>,
    drive: JoinHandle<Option<Outcome>>,
}

/// What a desk is made with.
pub(crate) struct ManagerOptions {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) node: String,
    pub(crate) drain_settings: Arc<DrainSettings>,
    pub(crate) format: Format,
    pub(crate) output: Output,
    pub(crate) metrics: Metrics,
    pub(crate) standing: watch::Sender<DriverState>,
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
            standing,
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
            standing,
            leases,
            current: None,
            ended: None,
            waiting: VecDeque::new(),
            stopping: false,
        }
    }

    /// Somebody demands something.
    pub(crate) async fn demand(&mut self, demand: DrainCommand) {
        match demand {
            DrainCommand::Begin(wish) => self.begin(wish).await,
            DrainCommand::Deadline { id, deadline } => self.order(&id, Event::Deadline(deadline)).await,
            DrainCommand::Cancel { id, reason } => {
                self.waiting.retain(|wish| wish.id != id);
                self.order(&id, Event::Cancel { reason }).await;
            }
            DrainCommand::Lost { id, reason } => self.lost(id, reason).await,
        }
    }

    /// Waits until the running drain is over; for ever when there is none.
    pub(crate) async fn ended(&mut self) -> Result<Option<Outcome>, JoinError> {
        match &mut self.current {
            Some(current) => (&mut current.drive).await,
            None => std::future::pending().await,
        }
    }

    /// The running drain is over: answered for, and the next one begun.
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
                self.standing.send_replace(ended);
            }
            None => {
                self.standing.send_replace(DriverState::Idle);
            }
        }
        if let Some(next) = self.waiting.pop_front() {
            self.begin(next).await;
        }
    }

    /// The driver is about to stop: nothing new is begun, and no further pod is asked to leave.
    pub(crate) async fn pause(&mut self) {
        self.stopping = true;
        self.waiting.clear();
        if let Some(current) = &self.current {
            current.orders.send(Event::Pause).await.unwrap_or_default();
        }
    }

    /// The driver stops now: whoever goes on with the drain need not wait for us.
    pub(crate) async fn leave(mut self) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        drop(current.orders);
        if timeout(FAREWELL, &mut current.drive).await.is_err() {
            current.drive.abort();
        }
    }

    async fn begin(&mut self, wish: DrainRequest) {
        if self.stopping {
            return;
        }
        match &self.current {
            Some(current) if current.id == wish.id => {}
            Some(_) => {
                if self.waiting.iter().all(|waiting| waiting.id != wish.id) {
                    tracing::info!(
                        wish = wish.name,
                        "another drain of this node is under way; this one waits"
                    );
                    self.waiting.push_back(wish);
                }
            }
            None => self.start(&wish, None),
        }
    }

    /// The wish is over without us. Where only what another process has left on the node is there of it, that is brought
    /// to its end: nobody here knows more of it than its id until the lease is ours.
    async fn lost(&mut self, id: String, reason: String) {
        self.waiting.retain(|wish| wish.id != id);
        if self.current.is_none() && self.ended.as_ref() != Some(&id) {
            let wish = DrainRequest {
                name: id.clone(),
                id,
                trigger: String::new(),
                intent: Intent::Drain,
                deadline: None,
                flags: None,
            };
            self.start(&wish, Some(Event::Lost { reason }));
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
        // A drive that is over takes no orders; its end is on its way to us.
        current.orders.send(order).await.unwrap_or_default();
    }

    /// A door's deadline by the clock of a drain.
    fn on_line_of(&self, clock: &Clock, deadline: Option<Time>) -> Option<Time> {
        deadline.map(|deadline| clock.moment_of(&self.deps.clock, deadline))
    }

    /// `end`: the wish is over already, and what stands on the node of it is to be ended like this.
    fn start(&mut self, wish: &DrainRequest, end: Option<Event>) {
        let begun = self.drain_settings.now().with(wish.flags.as_deref());
        let leases = NodeLeases {
            forbidden_timeout: begun.settings.forbidden_timeout.into(),
            ..self.leases.clone()
        };
        let clock = self.deps.clock.anchored();
        let request = Request {
            id: wish.id.clone(),
            name: wish.name.clone(),
            trigger: wish.trigger.clone(),
            intent: wish.intent,
            node: self.node.clone(),
            deadline: self.on_line_of(&clock, wish.deadline),
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
                followed: wish.flags.is_some(),
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
        self.standing
            .send_replace(DriverState::Running { id: wish.id.clone() });
        self.current = Some(RunningDrain {
            id: wish.id.clone(),
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
