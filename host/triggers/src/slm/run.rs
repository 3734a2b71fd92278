//! Creates, connects and ends all parts of the trigger. It must not interpret their messages.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::future::BoxFuture;
use scupper_common::tasks::{TaskEnded, Tasks};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::endpoints::Endpoints;
use super::event_loop::{LoopInputs, LoopOutputs, SlmLoop};
use super::registration::Registration;
use super::self_claim::{self, ClaimMachine};
use super::state::SlmState;
use super::transition_publisher::{self, PublisherInput};
use super::transition_sync::{self, TransitionSync};
use super::{ClaimApi, LifecycleChange, SlmError, SlmOptions, TransitionApi, TransitionChange};
use crate::{DrainCommand, DriverChanges, ResumePoint};

/// Capacity for waiting calls; the kubelet makes one at a time.
const CALLS: usize = 16;
/// Capacity for waiting warnings.
const WARNINGS: usize = 16;
/// Time limit for writing the last warnings.
const WARNED_WITHIN: Duration = Duration::from_secs(2);
/// Time limit for closing the sockets when the driver ends because of another task.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
/// With less time than this, most drains end as `SlaExpired`.
const SHORTEST_SENSIBLE_SLA: Duration = Duration::from_secs(60);

/// Finds the unfinished request of another process of this driver, once that process has ended; waits for the API
/// server if necessary.
pub type FindResumePoint = Arc<dyn Fn() -> BoxFuture<'static, Option<ResumePoint>> + Send + Sync>;

/// Connects the trigger with the rest of the driver.
pub struct SlmDeps<E, T> {
    /// The LifecycleEvents of this node.
    pub events: E,
    /// The LifecycleTransitions of this driver.
    pub transitions: T,
    /// Receives the trigger's commands.
    pub commands: mpsc::Sender<DrainCommand>,
    /// The driver's current activity, and how each drain ended.
    pub driver_changes: DriverChanges,
    /// Publishes the state of the registration with the kubelet.
    pub registration: watch::Sender<Registration>,
    /// Publishes whether no other instance of this driver runs and this one is not stopping, for the other triggers.
    pub sole_instance: watch::Sender<bool>,
    /// Called in each turn of the trigger's loop, at least once a second.
    pub heartbeat: Arc<dyn Fn() + Send + Sync>,
    /// Finds the unfinished request of another process.
    pub find_resume_point: FindResumePoint,
    /// Claims events where the kubelet does not.
    pub claims: Arc<dyn ClaimApi>,
}

/// The task that answers the kubelet. It is the only one that returns once the driver is asked to stop.
pub const SLM_TRIGGER: &str = "SLM trigger";

/// Starts all tasks of the trigger. [`SLM_TRIGGER`] serves the kubelet until `stop`, and then until a successor is running
/// or the grace period ends.
///
/// # Errors
/// The options are invalid.
pub fn start<E, T, F>(
    options: SlmOptions,
    transition_api: Arc<dyn TransitionApi>,
    deps: SlmDeps<E, T>,
    stop: CancellationToken,
    tasks: &mut Tasks<F>,
) -> Result<(), SlmError>
where
    E: Stream<Item = LifecycleChange> + Send + Unpin + 'static,
    T: Stream<Item = TransitionChange> + Send + Unpin + 'static,
    F: From<SlmError> + From<TaskEnded> + Send + 'static,
{
    options.check()?;
    if options.sla.is_some_and(|sla| sla < SHORTEST_SENSIBLE_SLA) {
        tracing::warn!(sla = ?options.sla, "the kubelet needs about 40 seconds for an event that takes no time at all");
    }
    let SlmDeps {
        events,
        transitions,
        commands,
        driver_changes,
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
            .with_retention(options.keep_finished)
            .with_forbidden_timeout(options.forbidden_timeout),
        api: claims,
        calls: calls.clone(),
        warnings: warnings.clone(),
        clock: options.clock,
    };

    let publishing = transition_publisher::publish_transitions(
        TransitionSync::new(&options),
        Arc::clone(&transition_api),
        transitions,
        publisher_inputs,
        claim_task.clone(),
    );
    tasks.spawn("transition publisher", publishing);
    let warning = transition_publisher::emit_warnings(transition_api, warned);
    tasks.spawn_closing("LifecycleEvent warnings", WARNED_WITHIN, warning);
    tasks.spawn("self-claim", claims_task.run(claim_inputs));
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
        driver_changes,
        stop,
    };
    tasks.spawn_fallible(SLM_TRIGGER, CLOSED_WITHIN, async move {
        let opening = Endpoints::open(&options, calls, reports);
        let endpoints = tokio::select! {
            opened = opening => opened?,
            () = inputs.stop.cancelled() => return Ok(()),
        };
        let state = SlmState::new(
            transition_sync::identity(&options),
            transition_sync::slas(&options),
        );
        let slm_loop = SlmLoop::new(&options, state, endpoints, outputs);
        Ok(slm_loop.work(inputs).await?)
    });
    Ok(())
}
