//! The single task that receives all inputs, passes them to the state, and sends the results. It must not decide
//! anything.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use super::call::{Call, CallDecision, Reply};
use super::endpoints::Endpoints;
use super::monotonic_deadlines::MonotonicDeadlines;
use super::registration::{Registration, RegistrationReport};
use super::rotation::{Activity, Rotation};
use super::self_claim::{ClaimInput, Claimant};
use super::service::PendingCall;
use super::shutdown::{Shutdown, ShutdownStep};
use super::state::{SlmOutput, SlmState};
use super::transition_publisher::PublisherInput;
use super::{FindResumePoint, LifecycleChange, SlmError, SlmOptions};
use crate::{DrainCommand, DriverChange, DriverChanges, ResumePoint};
use scupper_common::clock::Clock;

/// Time limit for a call's event to appear in the watch.
const EVENT_VISIBLE_WITHIN: Duration = Duration::from_secs(1);
/// Interval of the maintenance of sockets and connection.
const TICK: Duration = Duration::from_secs(1);
/// Time limit for a predecessor to end before this instance begins beside it.
const PREDECESSOR_GONE_WITHIN: Duration = Duration::from_secs(60);

/// The inputs of the loop.
pub(super) struct LoopInputs<E> {
    pub(super) events: E,
    pub(super) calls: mpsc::Receiver<PendingCall>,
    pub(super) reports: mpsc::UnboundedReceiver<RegistrationReport>,
    pub(super) driver_changes: DriverChanges,
    pub(super) stop: CancellationToken,
}

/// The outputs of the loop.
pub(super) struct LoopOutputs {
    pub(super) commands: mpsc::Sender<DrainCommand>,
    pub(super) warnings: mpsc::Sender<(&'static str, String)>,
    pub(super) publisher_input: watch::Sender<PublisherInput>,
    pub(super) registration: watch::Sender<Registration>,
    pub(super) sole_instance: watch::Sender<bool>,
    pub(super) heartbeat: Arc<dyn Fn() + Send + Sync>,
    pub(super) claim_task: mpsc::UnboundedSender<ClaimInput>,
    pub(super) find_resume_point: FindResumePoint,
}

/// A condition to wait for before any request begins.
enum StartupWait {
    /// The end of another instance, with the time limit.
    Predecessor(Instant),
    /// The read of another process's resume point.
    ResumePoint(BoxFuture<'static, Option<ResumePoint>>),
    Nothing,
}

/// The loop with all its state.
pub(super) struct SlmLoop {
    clock: Clock,
    monotonic_deadlines: MonotonicDeadlines,
    state: SlmState,
    endpoints: Endpoints,
    rotation: Rotation,
    /// Calls whose event the watch has not shown, each with its time limit.
    waiting_calls: VecDeque<(Instant, Call, oneshot::Sender<Reply>)>,
    /// Commands that the driver has not received yet.
    outbox: VecDeque<DrainCommand>,
    outputs: LoopOutputs,
    stopping: Shutdown,
    startup_wait: StartupWait,
    claimant: Claimant,
    /// This driver, not the kubelet, claims events.
    claims_events: bool,
}

impl SlmLoop {
    pub(super) fn new(
        options: &SlmOptions,
        mut state: SlmState,
        endpoints: Endpoints,
        outputs: LoopOutputs,
    ) -> Self {
        let now = Instant::now();
        state.pause(endpoints.has_predecessor());
        let startup_wait = if endpoints.has_predecessor() {
            StartupWait::Predecessor(now + PREDECESSOR_GONE_WITHIN)
        } else {
            StartupWait::ResumePoint((outputs.find_resume_point)())
        };
        Self {
            clock: options.clock,
            monotonic_deadlines: MonotonicDeadlines::new(options.clock),
            state,
            endpoints,
            rotation: Rotation::new(options.rotate_after, now),
            waiting_calls: VecDeque::new(),
            outbox: VecDeque::new(),
            outputs,
            stopping: Shutdown::new(options.stop_grace),
            startup_wait,
            claimant: options.claimant,
            claims_events: false,
        }
    }

    /// Runs until the requested stop is complete, or until the loop cannot continue.
    pub(super) async fn work(
        mut self,
        inputs: LoopInputs<impl Stream<Item = LifecycleChange> + Unpin>,
    ) -> Result<(), SlmError> {
        let LoopInputs {
            mut events,
            mut calls,
            mut reports,
            mut driver_changes,
            stop,
        } = inputs;
        let commands = self.outputs.commands.clone();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.handle_driver_changes(driver_changes.so_far());
        loop {
            let until = self.waiting_calls.front().map(|(until, ..)| *until);
            tokio::select! {
                biased;
                changes = driver_changes.next() => match changes {
                    Some(changes) => self.handle_driver_changes(changes),
                    None => return self.input_closed("driver's standing").await,
                },
                change = events.next() => match change {
                    Some(change) => self.handle_change(change),
                    None => return self.input_closed("watch of LifecycleEvents").await,
                },
                Some(PendingCall { call, reply }) = calls.recv() => {
                    self.rotation.used(Instant::now());
                    self.answer(Instant::now() + EVENT_VISIBLE_WITHIN, call, reply);
                }
                Some(report) = reports.recv() => self.handle_report(report),
                permit = commands.reserve(), if !self.outbox.is_empty() => match permit {
                    Ok(permit) => if let Some(command) = self.outbox.pop_front() {
                        permit.send(command);
                    },
                    Err(_) => return self.input_closed("driver's list of commands").await,
                },
                resume_point = self.startup_wait.resume_point() => {
                    self.unpause(resume_point);
                    // What another trigger's drain has left goes on before any event is claimed.
                    self.handle_driver_changes(driver_changes.so_far());
                }
                () = at(until) => self.expire_waiting_calls(),
                () = stop.cancelled(), if !self.stopping.is_asked() => {
                    self.handle_stop();
                    tick.reset_immediately();
                }
                _ = tick.tick() => match self.maintain(Instant::now()).await {
                    Ok(ShutdownStep::Stay | ShutdownStep::Deregister) => {}
                    Ok(ShutdownStep::Exit) => return self.leave(Ok(())).await,
                    Err(error) => return self.leave(Err(error)).await,
                },
            }
            self.send_outputs();
            (self.outputs.heartbeat)();
        }
    }

    /// An input has closed: an error, unless the whole driver is stopping.
    async fn input_closed(self, what: &'static str) -> Result<(), SlmError> {
        let ended = if self.stopping.is_asked() {
            Ok(())
        } else {
            Err(SlmError::Wire { what })
        };
        self.leave(ended).await
    }

    /// Closes all sockets, whatever the reason for the end: otherwise the kubelet would claim events for an absent
    /// driver.
    async fn leave(self, ended: Result<(), SlmError>) -> Result<(), SlmError> {
        self.endpoints.close().await;
        ended
    }

    fn handle_change(&mut self, change: LifecycleChange) {
        // The claim task translates deadlines itself: it also reads events from the API server.
        self.notify_claim_task(ClaimInput::EventChanged(change.clone()));
        let change = self.monotonic_deadlines.change(change);
        self.state.handle_change(change, self.clock.now());
        for (until, call, reply) in std::mem::take(&mut self.waiting_calls) {
            self.answer(until, call, reply);
        }
    }

    fn answer(&mut self, until: Instant, call: Call, reply: oneshot::Sender<Reply>) {
        if reply.is_closed() {
            // The kubelet has given up on the call, and the event has failed: nothing may begin.
            return;
        }
        match self.state.handle_call(&call, self.clock.now()) {
            CallDecision::EventUnknown => self.waiting_calls.push_back((until, call, reply)),
            CallDecision::Answer(answer, _) => send(&call, reply, answer),
        }
    }

    fn expire_waiting_calls(&mut self) {
        let now = Instant::now();
        while let Some((_, call, reply)) = self.waiting_calls.pop_front_if(|(until, ..)| *until <= now) {
            tracing::warn!(
                event = call.event,
                "called for a LifecycleEvent that the watch does not show"
            );
            send(&call, reply, Reply::Empty);
        }
    }

    fn handle_driver_changes(&mut self, changes: Vec<DriverChange>) {
        for change in changes {
            match change {
                DriverChange::Report(report) => self.state.handle_report(report),
                DriverChange::State(driver_state) => {
                    self.state.handle_driver_state(driver_state.clone());
                    self.notify_claim_task(ClaimInput::DriverStateChanged(driver_state));
                }
            }
        }
    }

    fn handle_report(&mut self, report: RegistrationReport) {
        if self.endpoints.handle_report(report) {
            self.rotation.used(Instant::now());
            self.outputs
                .publisher_input
                .send_modify(|publisher_input| publisher_input.registrations += 1);
        }
    }

    fn handle_stop(&mut self) {
        self.state.stop();
        self.stopping.ask(Instant::now());
    }

    /// Runs once a second.
    async fn maintain(&mut self, now: Instant) -> Result<ShutdownStep, SlmError> {
        let busy = self.state.is_busy();
        if self.stopping.is_asked() {
            let successor = self.stopping.wants_successor() && self.endpoints.has_other_instance().await;
            // If only this driver claims events, no calls arrive while it is away.
            let step = self.stopping.step(
                now,
                busy && !self.claimant.is_driver(self.endpoints.registration()),
                successor,
            );
            if step == ShutdownStep::Deregister {
                self.endpoints.deregister();
            }
            return Ok(step);
        }
        self.endpoints.maintain(now, busy).await?;
        self.await_predecessor(now).await;
        let activity = match (busy, self.state.has_pending_event()) {
            (true, _) => Activity::Busy,
            (false, true) => Activity::Pending,
            (false, false) => Activity::Quiet,
        };
        if self.endpoints.is_settled() && self.rotation.is_due(now, activity) {
            match self.endpoints.renew("the connection was not used for long") {
                Ok(()) => self.rotation.used(now),
                Err(error) => {
                    tracing::warn!(%error, source = error.source().map(ToString::to_string), "no new sockets");
                    self.rotation.postpone(now);
                }
            }
        }
        Ok(ShutdownStep::Stay)
    }

    /// Waits for a predecessor: a rolling update starts this process before it stops the old one, and the two must not
    /// run the same drain.
    async fn await_predecessor(&mut self, now: Instant) {
        let StartupWait::Predecessor(until) = self.startup_wait else {
            return;
        };
        if self.endpoints.has_other_instance().await {
            if now < until {
                return;
            }
            tracing::warn!("another instance of this driver has not stopped; going on beside it");
        }
        self.startup_wait = StartupWait::ResumePoint((self.outputs.find_resume_point)());
    }

    fn unpause(&mut self, resume_point: Option<ResumePoint>) {
        self.startup_wait = StartupWait::Nothing;
        self.state.unpause(resume_point);
    }

    /// Sends all pending outputs of the state.
    fn send_outputs(&mut self) {
        while let Some(output) = self.state.poll_output() {
            match output {
                SlmOutput::Command(command) => {
                    tracing::info!(?command, "command to the driver");
                    self.outbox.push_back(command);
                }
                SlmOutput::Warn { reason, message } => self.warn(reason, message),
                // The kubelet does not report why an event failed; the claim task does.
                SlmOutput::Refused { .. } if self.claims_events => {}
                SlmOutput::Refused { event, why } => {
                    self.warn("EventFailed", format!("LifecycleEvent {event} failed: {why}"));
                }
            }
        }
        let busy = self.state.is_busy();
        self.outputs
            .publisher_input
            .send_if_modified(|publisher_input| std::mem::replace(&mut publisher_input.busy, busy) != busy);
        let registration = self.endpoints.registration();
        self.outputs.registration.send_if_modified(|shown| {
            let changed = shown != registration;
            shown.clone_from(registration);
            changed
        });
        self.update_claiming();
    }

    fn warn(&self, reason: &'static str, message: String) {
        tracing::warn!(reason, "{message}");
        if self.outputs.warnings.try_send((reason, message)).is_err() {
            tracing::warn!(reason, "too many warnings wait to be emitted as Events");
        }
    }

    /// Updates whether this driver claims events. Two instances never do at once: the predecessor ends first.
    fn update_claiming(&mut self) {
        let sole_instance = matches!(self.startup_wait, StartupWait::Nothing) && !self.stopping.is_asked();
        self.outputs
            .sole_instance
            .send_if_modified(|shown| std::mem::replace(shown, sole_instance) != sole_instance);
        let claims_events = sole_instance && self.claimant.is_driver(self.endpoints.registration());
        if std::mem::replace(&mut self.claims_events, claims_events) == claims_events {
            return;
        }
        tracing::info!(
            leads = claims_events,
            "whether this driver claims LifecycleEvents in the place of the kubelet"
        );
        if claims_events {
            // Stands in for the registration that transitions otherwise wait for.
            self.outputs
                .publisher_input
                .send_modify(|publisher_input| publisher_input.registrations += 1);
        }
        self.notify_claim_task(ClaimInput::SetClaiming(claims_events));
    }

    fn notify_claim_task(&self, input: ClaimInput) {
        if self.outputs.claim_task.send(input).is_err() {
            tracing::debug!("the claiming of events has ended");
        }
    }
}

fn send(call: &Call, reply: oneshot::Sender<Reply>, answer: Reply) {
    if answer != Reply::Empty {
        tracing::info!(event = call.event, method = ?call.method, ?answer, "answered the kubelet");
    }
    if reply.send(answer).is_err() {
        tracing::warn!(event = call.event, "the kubelet did not wait for its answer");
    }
}

impl StartupWait {
    /// Returns another process's resume point once it is known.
    async fn resume_point(&mut self) -> Option<ResumePoint> {
        match self {
            Self::ResumePoint(look) => look.await,
            Self::Predecessor(_) | Self::Nothing => std::future::pending().await,
        }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
