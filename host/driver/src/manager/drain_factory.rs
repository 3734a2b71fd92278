//! Creates the driver's drains: new, or continued from the checkpoint on the node, which is read once the Lease is ours.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Checkpoint, Node, Outcome, Request, Time};

use crate::DriverError;
use crate::manager::expired_wait::{emit, end_event, end_of_waiting};
use crate::manager::resume_point;
use crate::occupancy::NodeOccupancy;
use scupper_common::clock::Clock;
use scupper_lease::LeaseRecord;
use scupper_metrics::Metrics;
use scupper_policy_reload::Catalogue;
use scupper_report::Format;
use scupper_runner::last_known::LastKnown;
use scupper_runner::leased_runner::{CreatedDrain, DrainFactory};
use scupper_runner::node_watch::LatestNode;
use scupper_runner::orders::DrainOrders;
use scupper_runner::reporter::{Output, Reporter};
use scupper_runner::{EngineRunner, RunnerDeps};
use scupper_triggers::{DrainReport, DrainReportSender};

/// Creates one drain of the driver.
pub(crate) struct DriverDrainFactory {
    pub(crate) deps: RunnerDeps,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) request: Request,
    /// When the trigger asked for it.
    pub(crate) since: Time,
    /// The request has ended already: the drain only completes what is left on the node.
    pub(crate) only_end: bool,
    pub(crate) format: Format,
    pub(crate) output: Output,
    pub(crate) metrics: Metrics,
    /// Receives the policies that hold it, and what it did.
    pub(crate) reports: DrainReportSender,
    /// A command follows it, because it handed the drain over.
    pub(crate) followed: bool,
    /// Its start was reported.
    pub(crate) is_started: bool,
    /// What its engine knew when the Lease was lost.
    pub(crate) last_known: LastKnown,
}

impl DrainFactory for DriverDrainFactory {
    type Error = DriverError;

    async fn create(
        &mut self,
        orders: &DrainOrders,
        lease: &LeaseRecord,
    ) -> Result<CreatedDrain, DriverError> {
        self.report_start();
        let node = resume_point::current_node(&self.deps.cluster, &self.request.node).await;
        // Only the node as it is now counts.
        let id = self.request.id.as_str();
        let request = (id, self.last_known.mark());
        let occupancy = NodeOccupancy::of(Some(request), self.request.intent, node.as_ref());
        let mark = occupancy.own();
        if let Some(over) = self.is_over(node.as_ref(), mark, orders) {
            return Ok(CreatedDrain::Over(over));
        }
        if let Some(mark) = mark.filter(|_| self.only_end) {
            self.request.name.clone_from(&mark.name);
            self.request.trigger.clone_from(&mark.trigger);
            self.request.intent = mark.intent;
            // A wall time on the node.
            let moment = |wall| self.deps.clock.moment_of_wall(wall);
            self.request.deadline = mark.deadline.map(moment);
        }
        // The engine looks at its deadline before it hears of any order.
        self.request.deadline = orders.deadline(self.request.deadline);
        let runner = self.runner(node, mark.cloned()).await;
        if let Some(mark) = mark {
            self.last_known.resume(mark);
        }
        let runner = runner.and_last_known(self.last_known.clone());
        Ok(CreatedDrain::Runner(Box::new(runner.and_lease(lease.clone()))))
    }

    fn request(&self) -> &Request {
        &self.request
    }

    fn clock(&self) -> Clock {
        self.deps.clock
    }

    fn has_begun(&self) -> bool {
        let own = self.deps.watched_node.as_ref();
        self.only_end || own.is_none_or(|node| may_have_begun(node, &self.request.id))
    }

    /// No other process rolls the node back.
    fn wait_after_deadline(&self) -> Option<Duration> {
        (!self.has_begun()).then_some(Duration::ZERO)
    }

    fn waiting_for(&self, holder: &str) {
        let (node, drain) = (&self.request.node, &self.request.name);
        tracing::warn!(node, drain, "waiting for the node's Lease, which {holder} holds");
    }

    async fn deadline_passed(&self) -> Outcome {
        let RunnerDeps { cluster, clock, .. } = &self.deps;
        let (node, drain) = (&self.request.node, &self.request.name);
        tracing::warn!(
            node,
            drain,
            "the deadline passed while another process was draining this node: nothing has changed"
        );
        let end = end_of_waiting(cluster, *clock, &self.request, self.since).await;
        // The conditions belong to the process that drains.
        if let Some(event) = end_event(&self.request, &end) {
            tokio::spawn(emit(cluster.clone(), event));
        }
        end.0
    }
}

impl DriverDrainFactory {
    /// Before the Lease is ours, the drain only waits.
    fn report_start(&mut self) {
        if !std::mem::replace(&mut self.is_started, true) {
            let id = self.request.id.clone();
            self.reports.send(&DrainReport::Started { id });
        }
    }

    /// Nothing is left to do: the outcome, if it is known. Another drain on the node is no obstacle: its process has lost
    /// the Lease, so this drain replaces it.
    fn is_over(
        &self,
        node: Option<&Node>,
        mark: Option<&Checkpoint>,
        orders: &DrainOrders,
    ) -> Option<Option<Outcome>> {
        // The drain itself reports a deleted node.
        let node = node?;
        let called_off = orders.called_off();
        if let Some(end) = self.last_known.end_on(&self.request.id, Some(node)) {
            let drained = resume_point::drained_by_another(&self.request, node);
            let outcome = drained.unwrap_or_else(|| end.outcome(orders, &node.name));
            let drain = &self.request.name;
            tracing::warn!(
                node = node.name,
                drain,
                %outcome,
                "the drain ended while this driver did not hold the node's Lease"
            );
            return Some(Some(outcome));
        }
        match mark {
            Some(mark) if mark.is_under_way() => None,
            _ if self.only_end => Some(None),
            // It was done, and the node was given back since: what is on it now came for another reason.
            Some(mark) if mark.ended_well && mark.own_cordon && !node.unschedulable => {
                Some(Some(Outcome::Drained))
            }
            Some(mark) if mark.ended_well => called_off.map(|_| Some(Outcome::Drained)),
            Some(_) => called_off.map(Some),
            None if called_off.is_some() => Some(called_off),
            None => resume_point::drained_by_another(&self.request, node).map(Some),
        }
    }

    async fn runner(&self, node: Option<Node>, resume: Option<Checkpoint>) -> EngineRunner {
        // This may wait until the policy revisions of a former process are loaded.
        let session = match &resume {
            Some(checkpoint) => self.catalogue.resume(&checkpoint.hooks).await,
            None => self.catalogue.session(),
        };
        let mut request = self.request.clone();
        request.policies = session.infos();
        let now = self.deps.clock.now();
        let started = resume.as_ref().map_or(now, |checkpoint| checkpoint.started);
        let reporter = Reporter::lines(self.format, &self.output, now, started, &request)
            .resuming(resume.as_ref())
            .and_cluster(self.deps.cluster.clone(), &request)
            .and_metrics(&self.metrics, &request)
            .and_reports(self.reports.clone())
            .and_traces(
                self.deps.traces.as_ref(),
                self.deps.clock,
                &request,
                resume.as_ref(),
            )
            .and_follower(self.followed);
        let session = Arc::new(session);
        EngineRunner::new(self.deps.clone(), session, request, resume, reporter).and_node(node)
    }
}

/// This drain may have changed the node, as far as the watch has shown.
fn may_have_begun(node: &LatestNode, id: &str) -> bool {
    node.newest().is_none_or(|node| {
        let mark = node.and_then(|node| node.checkpoint);
        mark.is_some_and(|mark| mark.id == id && mark.is_under_way())
    })
}
