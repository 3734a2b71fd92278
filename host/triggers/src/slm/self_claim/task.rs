//! Carries out the machine's actions, one at a time, and returns their results. It must not decide anything.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::api::ClaimApi;
use super::machine::{ActionResult, ClaimMachine, ClaimNotice};
use super::rules::ClaimAction;
use crate::DriverState;
use crate::slm::LifecycleChange;
use crate::slm::monotonic_deadlines::MonotonicDeadlines;
use crate::slm::service::PendingCall;
use scupper_common::clock::Clock;

/// The wait if no timer is set: every change wakes the task.
const NO_TIMER: Duration = Duration::from_secs(3600);

/// The inputs of the task.
#[derive(Debug)]
pub(in crate::slm) enum ClaimInput {
    /// A change from the watch of events, after the trigger has handled it.
    EventChanged(LifecycleChange),
    /// A change of the driver's activity, after the trigger has handled it.
    DriverStateChanged(DriverState),
    /// The transition of this name was published, changed or deleted.
    TransitionChanged(String),
    /// Whether this driver claims events.
    SetClaiming(bool),
}

/// Claims, drives and ends events.
pub(in crate::slm) struct ClaimTask {
    pub(in crate::slm) machine: ClaimMachine,
    pub(in crate::slm) api: Arc<dyn ClaimApi>,
    /// Receives calls, as the trigger would from a kubelet.
    pub(in crate::slm) calls: mpsc::Sender<PendingCall>,
    /// Receives warnings for users.
    pub(in crate::slm) warnings: mpsc::Sender<(&'static str, String)>,
    pub(in crate::slm) clock: Clock,
}

impl ClaimTask {
    /// Runs until its inputs close.
    pub(in crate::slm) async fn run(mut self, mut input: mpsc::UnboundedReceiver<ClaimInput>) {
        let mut monotonic_deadlines = MonotonicDeadlines::new(self.clock);
        let mut running: Option<BoxFuture<'static, ActionResult>> = None;
        loop {
            if running.is_none() {
                let action = self.machine.poll_action(self.clock.now());
                running = action.map(|action| self.perform(monotonic_deadlines.action(action)));
            }
            self.notify();
            let wait = self.wait();
            tokio::select! {
                biased;
                input = input.recv() => match input {
                    Some(ClaimInput::EventChanged(change)) => self.machine.handle_change(monotonic_deadlines.change(change)),
                    Some(ClaimInput::DriverStateChanged(state)) => self.machine.handle_driver_state(&state),
                    Some(ClaimInput::TransitionChanged(name)) => self.machine.wake_for_transition(&name),
                    Some(ClaimInput::SetClaiming(claims_events)) => {
                        // Abandons the action under way: the kubelet continues from what is written.
                        running = None;
                        self.machine.handle_claiming(claims_events);
                    }
                    None => return,
                },
                done = in_flight(&mut running) => {
                    running = None;
                    self.machine.handle_done(monotonic_deadlines.done(done), self.clock.now());
                }
                () = sleep(wait), if running.is_none() => {}
            }
        }
    }

    fn wait(&self) -> Duration {
        let now = self.clock.now();
        let until = self.machine.poll_timeout(now);
        until.map_or(NO_TIMER, |until| until.since(now))
    }

    fn perform(&self, action: ClaimAction) -> BoxFuture<'static, ActionResult> {
        let api = Arc::clone(&self.api);
        let calls = self.calls.clone();
        async move {
            match action {
                ClaimAction::Read(event) => ActionResult::Read(api.read(&event).await),
                ClaimAction::Write(seen, change) => ActionResult::Written(api.write(&seen, &change).await),
                ClaimAction::Delete(seen) => ActionResult::Deleted(api.delete(&seen).await),
                ClaimAction::SetCondition(condition) => {
                    ActionResult::Set(api.set_condition(&condition).await)
                }
                ClaimAction::Call(call) => {
                    let (reply, answer) = oneshot::channel();
                    let asked = calls.send(PendingCall { call, reply }).await;
                    let answer = if asked.is_ok() { answer.await.ok() } else { None };
                    ActionResult::Answered(answer)
                }
            }
        }
        .boxed()
    }

    fn notify(&mut self) {
        while let Some(notice) = self.machine.poll_notice() {
            match notice {
                ClaimNotice::Became { event, claim } => {
                    tracing::info!(event, claim = claim.as_str(), "LifecycleEvent");
                }
                ClaimNotice::Postponed { event, why } => {
                    tracing::info!(event, why, "this LifecycleEvent is postponed");
                }
                ClaimNotice::Waiting { event, what } => {
                    tracing::info!(
                        event,
                        what,
                        "this LifecycleEvent is claimed once the driver has ended this"
                    );
                    let message = format!("LifecycleEvent {event} is claimed once {what} has ended");
                    self.warn("LifecycleEventWaits", message);
                }
                ClaimNotice::Failed { event, why } => {
                    let message = format!("LifecycleEvent {event} failed: {why}");
                    tracing::warn!(event, why, "this LifecycleEvent fails");
                    self.warn("EventFailed", message);
                }
            }
        }
    }

    fn warn(&self, reason: &'static str, message: String) {
        if self.warnings.try_send((reason, message)).is_err() {
            tracing::warn!(reason, "too many warnings wait to be emitted as Events");
        }
    }
}

async fn in_flight(running: &mut Option<BoxFuture<'static, ActionResult>>) -> ActionResult {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
