//! The drain of one node in the process of a command: what it continues, and what is said before an engine runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Checkpoint, Intent, Notice, Outcome, Phase, Request, Summary, Time, Trigger, Uid};

use super::begin::{self, BegunDrain, NodeAtDrainStart};
use super::own_flags;
use super::run::{LocalDrains, new_id};
use crate::DriverError;
use crate::manager::expired_wait::end_of_waiting;
use crate::occupancy::LocalError;
use scupper_common::clock::Clock;
use scupper_common::health::Health;
use scupper_lease::LeaseRecord;
use scupper_report::{FollowEvent, end_text};
use scupper_runner::last_known::{DrainEnd, LastKnown};
use scupper_runner::leased_runner::{CreatedDrain, DrainFactory};
use scupper_runner::orders::DrainOrders;
use scupper_runner::out_of_service;
use scupper_runner::reporter::Reporter;
use scupper_runner::{EngineRunner, RunnerDeps};

/// How long after its deadline a drain whose Lease was lost waits for it, to roll back.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(30);

/// Creates the drain of one node.
pub(super) struct LocalDrainFactory<'a> {
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

impl<'a> LocalDrainFactory<'a> {
    /// A drain that has not begun.
    pub(super) fn new(drains: &'a LocalDrains, take_over: bool, start: NodeAtDrainStart) -> Self {
        let since = drains.options.clock.now();
        let own_id = new_id(since);
        let request = drains.request(&own_id, since, &start);
        Self {
            drains,
            take_over,
            start,
            request,
            own_id,
            since,
            begun: false,
            last_known: LastKnown::default(),
        }
    }

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
    pub(super) async fn check_flags(&self) -> Result<(), DriverError> {
        let LocalDrains { cluster, options, .. } = self.drains;
        let NodeAtDrainStart { node, resume, .. } = &self.start;
        let mark = resume.as_ref();
        let continues = !self.begun && options.roll_back.is_none();
        let Some(mark) = mark.filter(|mark| continues && mark.intent == Intent::Drain) else {
            return Ok(());
        };
        let now = options.clock.now();
        let policies = &self.request.policies;
        own_flags::check(cluster, node, mark, (&options.drain, policies), now).await
    }

    /// What this drain waited for has not ended, and its process has not the Lease any more. A driver's is left to it.
    fn abandoned_ahead(&self, error: &DriverError) -> Option<String> {
        self.start.behind.as_ref()?;
        match error {
            DriverError::Local(LocalError::Busy {
                trigger,
                name,
                intent: Intent::Drain,
                ..
            }) if Trigger::of(trigger) == Trigger::Command => Some(format!("{trigger} {name}")),
            _ => None,
        }
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
                "node {node}: policy {policy} took part in the drain and is not active here, so this command does not \
                 run its hooks. To undo its part afterwards: scupper uncordon {node} --local --config scupper.yaml"
            );
        }
        Ok(())
    }
}

impl DrainFactory for LocalDrainFactory<'_> {
    type Error = DriverError;

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
        let look = async |take_over| {
            begin::look_again(
                cluster,
                (options, take_over),
                &self.start.node,
                own,
                lease.is_held,
            )
            .await
        };
        let start = match look(self.take_over).await {
            Err(error) => {
                let Some(ahead) = self.abandoned_ahead(&error).filter(|_| lease.is_held) else {
                    return Err(error);
                };
                tracing::warn!(
                    "node {}: the process of {ahead} no longer holds the node's Lease; continuing that drain with the \
                     flags of this command",
                    self.start.node
                );
                self.take_over = true;
                look(true).await?
            }
            Ok(start) => start,
        };
        self.start = start;
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

    fn called_off(&self, outcome: &Outcome) {
        let why = end_text(outcome.name(), "", &outcome.to_string());
        let ended = FollowEvent::Ended {
            outcome: outcome.name().to_owned(),
            message: format!("{why}; nothing was begun"),
            left: None,
        };
        self.drains.say(&self.request.node, &ended);
    }

    async fn deadline_passed(&self) -> Outcome {
        let LocalDrains { cluster, options, .. } = self.drains;
        let (node, request) = (&self.request.node, &self.request);
        tracing::warn!("node {node}: the deadline passed before this command had the node's Lease");
        let (outcome, summary) = end_of_waiting(cluster, options.clock, request, self.since).await;
        self.report_end(&outcome, summary);
        outcome
    }

    fn waiting_for(&self, holder: &str) {
        let node = &self.request.node;
        let words = match &self.start.behind {
            Some(behind) => format!("queued behind {behind}"),
            None => format!("waiting for the node's Lease, which {holder} holds"),
        };
        if let Some(board) = &self.drains.options.board {
            board.begin(node, self.drains.options.clock.now(), &words);
        }
        // A line says what it is queued behind.
        if self.start.behind.is_none() {
            tracing::warn!("node {node}: {words}");
        }
    }
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
