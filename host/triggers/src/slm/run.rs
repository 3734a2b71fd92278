//! The door from its opening to its end: everything made, joined and ended. It must not know what is said.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::endpoints::Endpoints;
use super::event_loop::{LoopInputs, LoopOutputs, SlmLoop};
use super::registration::Registration;
use super::self_claim::{self, ClaimMachine};
use super::state::SlmState;
use super::transition_publisher::{self, PublisherInput};
use super::transition_sync::{self, TransitionSync};
use super::{ClaimApi, LifecycleChange, SlmError, SlmOptions, TransitionApi, TransitionChange};
use crate::{DrainCommand, DriverState, ResumePoint};

/// Calls that may wait; the kubelet makes one at a time.
const CALLS: usize = 16;
/// Warnings that may wait.
const WARNINGS: usize = 16;
/// How long the last warnings may take to be written.
const WARNED_WITHIN: Duration = Duration::from_secs(2);
/// Below this most drains end `SlaExpired`.
const SHORTEST_SENSIBLE_SLA: Duration = Duration::from_secs(60);

/// Looks what another process of this driver was at, once that has ended; waits for whoever must be asked.
pub type FindResumePoint = Arc<dyn Fn() -> BoxFuture<'static, Option<ResumePoint>> + Send + Sync>;

/// What connects the door with the rest of the driver.
pub struct SlmDeps<E, T> {
    /// The LifecycleEvents of this node.
    pub events: E,
    /// The LifecycleTransitions of this driver.
    pub transitions: T,
    /// Where wishes go.
    pub commands: mpsc::Sender<DrainCommand>,
    /// What the driver is at.
    pub driver_state: watch::Receiver<DriverState>,
    /// How it stands between the kubelet and us.
    pub registration: watch::Sender<Registration>,
    /// No other instance of this driver is at work, and this one does not stop: for the other doors.
    pub sole_instance: watch::Sender<bool>,
    /// Called whenever the door's loop turns, which is once a second at least.
    pub heartbeat: Arc<dyn Fn() + Send + Sync>,
    /// Looks what another process has left.
    pub find_resume_point: FindResumePoint,
    /// How events are claimed where the kubelet does not do it.
    pub claims: Arc<dyn ClaimApi>,
}

/// Serves the kubelet until `stop`, and then until a successor is there or the grace is over.
///
/// # Errors
/// The first thing without which the door cannot work.
pub async fn run<E, T>(
    options: SlmOptions,
    transition_api: Arc<dyn TransitionApi>,
    deps: SlmDeps<E, T>,
    stop: CancellationToken,
) -> Result<(), SlmError>
where
    E: Stream<Item = LifecycleChange> + Send + Unpin,
    T: Stream<Item = TransitionChange> + Send + Unpin + 'static,
{
    options.check()?;
    if options.sla.is_some_and(|sla| sla < SHORTEST_SENSIBLE_SLA) {
        tracing::warn!(sla = ?options.sla, "the kubelet needs about 40 seconds for an event that takes no time at all");
    }
    let SlmDeps {
        events,
        transitions,
        commands,
        driver_state,
        registration,
        sole_instance,
        heartbeat,
        find_resume_point,
        claims,
    } = deps;
    let (calls, inbox) = mpsc::channel(CALLS);
    let (reports, report_receiver) = mpsc::unbounded_channel();
    let (warnings, warned) = mpsc::channel(WARNINGS);
    let (publisher_input, publisher_inputs) = watch::channel(PublisherInput::default());

    let (claim_task, claim_inputs) = mpsc::unbounded_channel();
    let claims_task = self_claim::ClaimTask {
        machine: ClaimMachine::new(&options.driver_name, &options.node_name)
            .with_retention(options.keep_finished.into())
            .with_forbidden_timeout(options.forbidden_timeout.into()),
        api: claims,
        calls: calls.clone(),
        warnings: warnings.clone(),
        clock: options.clock,
    };

    let endpoints = tokio::select! {
        opened = Endpoints::open(&options, calls, reports) => opened?,
        () = stop.cancelled() => return Ok(()),
    };
    let publishing = transition_publisher::publish_transitions(
        TransitionSync::new(&options),
        Arc::clone(&transition_api),
        transitions,
        publisher_inputs,
    );
    let publishing = tokio::spawn(publishing);
    let warning = tokio::spawn(transition_publisher::emit_warnings(transition_api, warned));
    let claim_handle = tokio::spawn(claims_task.run(claim_inputs));

    let state = SlmState::new(
        transition_sync::identity(&options),
        transition_sync::slas(&options),
    );
    let outputs = LoopOutputs {
        commands,
        warnings,
        publisher_input,
        registration,
        sole_instance,
        heartbeat,
        claim_task,
        find_resume_point,
    };
    let inputs = LoopInputs {
        events,
        calls: inbox,
        reports: report_receiver,
        driver_state,
        stop,
    };
    let result = SlmLoop::new(&options, state, endpoints, outputs)
        .work(inputs)
        .await;
    publishing.abort();
    claim_handle.abort();
    if timeout(WARNED_WITHIN, warning).await.is_err() {
        tracing::warn!("the last warnings could not be emitted as Events in time");
    }
    result
}
