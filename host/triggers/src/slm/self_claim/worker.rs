//! Does what the machine says, one thing at a time, and tells it what came of it. It must not decide anything.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::api::ClaimApi;
use super::decide::Action;
use super::machine::{Done, Machine, Note};
use crate::slm::LifecycleChange;
use crate::slm::anchors::Anchors;
use crate::slm::service::Asked;
use scupper_common::clock::Clock;

/// Nothing is to be done at a certain time: every change wakes the worker.
const NO_TIMER: Duration = Duration::from_secs(3600);

/// What the worker hears.
#[derive(Debug)]
pub(in crate::slm) enum Heard {
    /// The watch of events tells something, and the door has heard it.
    Change(LifecycleChange),
    /// The driver is at something else than before, and the door has heard it.
    Stirred,
    /// It is our part to claim, or not any more.
    Lead(bool),
}

/// Claims, drives and ends events.
pub(in crate::slm) struct Worker {
    pub(in crate::slm) machine: Machine,
    pub(in crate::slm) api: Arc<dyn ClaimApi>,
    /// The door.
    pub(in crate::slm) calls: mpsc::Sender<Asked>,
    /// For people.
    pub(in crate::slm) warnings: mpsc::Sender<(&'static str, String)>,
    pub(in crate::slm) clock: Clock,
}

impl Worker {
    /// Works until nobody tells it anything any more.
    pub(in crate::slm) async fn work(mut self, mut heard: mpsc::UnboundedReceiver<Heard>) {
        let mut anchors = Anchors::new(self.clock);
        let mut doing: Option<BoxFuture<'static, Done>> = None;
        loop {
            if doing.is_none() {
                let action = self.machine.poll_action(self.clock.now());
                doing = action.map(|action| self.perform(anchors.action(action)));
            }
            self.tell();
            let wait = self.wait();
            tokio::select! {
                biased;
                heard = heard.recv() => match heard {
                    Some(Heard::Change(change)) => self.machine.handle_change(anchors.change(change)),
                    Some(Heard::Stirred) => self.machine.stir_all(),
                    Some(Heard::Lead(leads)) => {
                        // Whatever is under way is let go: the kubelet goes on from what is written.
                        doing = None;
                        self.machine.handle_lead(leads);
                    }
                    None => return,
                },
                done = under_way(&mut doing) => {
                    doing = None;
                    self.machine.handle_done(anchors.done(done), self.clock.now());
                }
                () = sleep(wait), if doing.is_none() => {}
            }
        }
    }

    fn wait(&self) -> Duration {
        let now = self.clock.now();
        let until = self.machine.poll_timeout(now);
        until.map_or(NO_TIMER, |until| until.since(now).into())
    }

    fn perform(&self, action: Action) -> BoxFuture<'static, Done> {
        let api = Arc::clone(&self.api);
        let calls = self.calls.clone();
        async move {
            match action {
                Action::Look(event) => Done::Looked(api.look(&event).await),
                Action::Write(seen, change) => Done::Written(api.write(&seen, &change).await),
                Action::Remove(seen) => Done::Removed(api.remove(&seen).await),
                Action::SetCondition(condition) => Done::Set(api.set_condition(&condition).await),
                Action::Call(call) => {
                    let (reply, answer) = oneshot::channel();
                    let asked = calls.send(Asked { call, reply }).await;
                    let answer = if asked.is_ok() { answer.await.ok() } else { None };
                    Done::Answered(answer)
                }
            }
        }
        .boxed()
    }

    fn tell(&mut self) {
        while let Some(note) = self.machine.poll_note() {
            match note {
                Note::Became { event, claim } => {
                    tracing::info!(event, claim = claim.as_str(), "LifecycleEvent");
                }
                Note::Left { event, why } => {
                    tracing::info!(event, why, "this LifecycleEvent is left as it is for now");
                }
                Note::Failed { event, why } => {
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

async fn under_way(doing: &mut Option<BoxFuture<'static, Done>>) -> Done {
    match doing {
        Some(doing) => doing.await,
        None => std::future::pending().await,
    }
}
