//! Does what the machine says, one thing at a time, and tells it what came of it. It must not decide anything.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::api::ClaimApi;
use super::machine::{ActionResult, ClaimMachine, ClaimNotice};
use super::rules::ClaimAction;
use crate::slm::LifecycleChange;
use crate::slm::monotonic_deadlines::MonotonicDeadlines;
use crate::slm::service::PendingCall;
use scupper_common::clock::Clock;

/// Nothing is to be done at a certain time: every change wakes the worker.
const NO_TIMER: Duration = Duration::from_secs(3600);

/// What the worker hears.
#[derive(Debug)]
pub(in crate::slm) enum ClaimInput {
    /// The watch of events tells something, and the door has heard it.
    EventChanged(LifecycleChange),
    /// The driver is at something else than before, and the door has heard it.
    DriverStateChanged,
    /// It is our part to claim, or not any more.
    SetClaiming(bool),
}

/// Claims, drives and ends events.
pub(in crate::slm) struct ClaimTask {
    pub(in crate::slm) machine: ClaimMachine,
    pub(in crate::slm) api: Arc<dyn ClaimApi>,
    /// The door.
    pub(in crate::slm) calls: mpsc::Sender<PendingCall>,
    /// For people.
    pub(in crate::slm) warnings: mpsc::Sender<(&'static str, String)>,
    pub(in crate::slm) clock: Clock,
}

impl ClaimTask {
    /// Works until nobody tells it anything any more.
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
                    Some(ClaimInput::DriverStateChanged) => self.machine.wake_all(),
                    Some(ClaimInput::SetClaiming(claims_events)) => {
                        // Whatever is under way is let go: the kubelet goes on from what is written.
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
        until.map_or(NO_TIMER, |until| until.since(now).into())
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
                    tracing::info!(event, why, "this LifecycleEvent is left as it is for now");
                }
                ClaimNotice::Failed { event, why } => {
                    let message = format!("LifecycleEvent {event} failed: {why}");
                    tracing::warn!(event, why, "this LifecycleEvent fails");
                    if self.warnings.try_send(("EventFailed", message)).is_err() {
                        tracing::warn!(event, "too many warnings wait to be emitted as Events");
                    }
                }
            }
        }
    }
}

async fn in_flight(running: &mut Option<BoxFuture<'static, ActionResult>>) -> ActionResult {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}
