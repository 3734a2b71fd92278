//! The one task that hears everything, asks the door's memory, and passes on what follows. It must not know why.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use super::anchors::Anchors;
use super::claim::{Call, Reply, Verdict};
use super::door::{Door, Output};
use super::endpoints::Endpoints;
use super::keeper::Situation;
use super::registration::{Registration, Word};
use super::rotate::{Rotation, Traffic};
use super::self_claim::{Claimant, Heard};
use super::service::Asked;
use super::stop::{Step, Stopping};
use super::{LifecycleChange, LookBack, SlmError, SlmOptions};
use crate::{Demand, Resume, Standing};
use scupper_common::clock::Clock;

/// How long a call waits for its event to come into view.
const IN_VIEW_WITHIN: Duration = Duration::from_secs(1);
/// How often the sockets and the connection are looked after.
const TICK: Duration = Duration::from_secs(1);
/// How long another instance that was there before us may stay before we begin beside it.
const PREDECESSOR_GONE_WITHIN: Duration = Duration::from_secs(60);

/// Whom the worker hears.
pub(super) struct Hears<E> {
    pub(super) events: E,
    pub(super) calls: mpsc::Receiver<Asked>,
    pub(super) words: mpsc::UnboundedReceiver<Word>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) stop: CancellationToken,
}

/// Whom the worker tells.
pub(super) struct Tells {
    pub(super) demands: mpsc::Sender<Demand>,
    pub(super) warnings: mpsc::Sender<(&'static str, String)>,
    pub(super) situation: watch::Sender<Situation>,
    pub(super) registration: watch::Sender<Registration>,
    pub(super) alone: watch::Sender<bool>,
    pub(super) turned: Arc<dyn Fn() + Send + Sync>,
    pub(super) claimer: mpsc::UnboundedSender<Heard>,
    pub(super) look_back: LookBack,
}

/// What the door waits for before it begins anything.
enum Waits {
    /// Another instance to end, and until when.
    Predecessor(Instant),
    /// What others have left to be looked at.
    LookBack(BoxFuture<'static, Option<Resume>>),
    Nothing,
}

/// Everything the one task holds.
pub(super) struct Worker {
    clock: Clock,
    anchors: Anchors,
    door: Door,
    endpoints: Endpoints,
    rotation: Rotation,
    /// Calls whose event has not come into view, and until when they wait.
    parked: VecDeque<(Instant, Call, oneshot::Sender<Reply>)>,
    /// Demands that the driver has not taken yet.
    outbox: VecDeque<Demand>,
    tells: Tells,
    stopping: Stopping,
    waits: Waits,
    claimant: Claimant,
    /// It is our part to claim events.
    leads: bool,
}

impl Worker {
    pub(super) fn new(options: &SlmOptions, mut door: Door, endpoints: Endpoints, tells: Tells) -> Self {
        let now = Instant::now();
        door.hold(endpoints.has_predecessor());
        let waits = if endpoints.has_predecessor() {
            Waits::Predecessor(now + PREDECESSOR_GONE_WITHIN)
        } else {
            Waits::LookBack((tells.look_back)())
        };
        Self {
            clock: options.clock,
            anchors: Anchors::new(options.clock),
            door,
            endpoints,
            rotation: Rotation::new(options.rotate_after, now),
            parked: VecDeque::new(),
            outbox: VecDeque::new(),
            tells,
            stopping: Stopping::new(options.stop_grace),
            waits,
            claimant: options.claimant,
            leads: false,
        }
    }

    /// Works until it was asked to stop and may, or cannot go on.
    pub(super) async fn work(
        mut self,
        hears: Hears<impl Stream<Item = LifecycleChange> + Unpin>,
    ) -> Result<(), SlmError> {
        let Hears {
            mut events,
            mut calls,
            mut words,
            mut standing,
            stop,
        } = hears;
        let demands = self.tells.demands.clone();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.door.handle_standing(standing.borrow_and_update().clone());
        loop {
            let until = self.parked.front().map(|(until, ..)| *until);
            tokio::select! {
                biased;
                changed = standing.changed() => match changed {
                    Ok(()) => {
                        self.door.handle_standing(standing.borrow_and_update().clone());
                        self.tell_claimer(Heard::Stirred);
                    }
                    Err(_) => return self.broken("driver's standing").await,
                },
                change = events.next() => match change {
                    Some(change) => self.handle_change(change),
                    None => return self.broken("watch of LifecycleEvents").await,
                },
                Some(Asked { call, reply }) = calls.recv() => {
                    self.rotation.used(Instant::now());
                    self.answer(Instant::now() + IN_VIEW_WITHIN, call, reply);
                }
                Some(word) = words.recv() => self.handle_word(word),
                permit = demands.reserve(), if !self.outbox.is_empty() => match permit {
                    Ok(permit) => if let Some(demand) = self.outbox.pop_front() {
                        permit.send(demand);
                    },
                    Err(_) => return self.broken("driver's list of demands").await,
                },
                left = self.waits.left() => self.release(left),
                () = at(until) => self.give_up_waiting(),
                () = stop.cancelled(), if !self.stopping.is_asked() => {
                    self.handle_stop();
                    tick.reset_immediately();
                }
                _ = tick.tick() => match self.tend(Instant::now()).await {
                    Ok(Step::Stay | Step::Deregister) => {}
                    Ok(Step::Leave) => return self.leave(Ok(())).await,
                    Err(error) => return self.leave(Err(error)).await,
                },
            }
            self.pass_on();
            (self.tells.turned)();
        }
    }

    /// Something without which we cannot work is gone, unless the whole driver is stopping.
    async fn broken(self, what: &'static str) -> Result<(), SlmError> {
        let ended = if self.stopping.is_asked() {
            Ok(())
        } else {
            Err(SlmError::Wire { what })
        };
        self.leave(ended).await
    }

    /// Whatever the reason, no socket is left behind: the kubelet would claim events for nobody.
    async fn leave(self, ended: Result<(), SlmError>) -> Result<(), SlmError> {
        self.endpoints.close().await;
        ended
    }

    fn handle_change(&mut self, change: LifecycleChange) {
        // The claimer translates deadlines itself: it reads events from the API server as well.
        self.tell_claimer(Heard::Change(change.clone()));
        let change = self.anchors.change(change);
        self.door.handle_change(change, self.clock.now());
        for (until, call, reply) in std::mem::take(&mut self.parked) {
            self.answer(until, call, reply);
        }
    }

    fn answer(&mut self, until: Instant, call: Call, reply: oneshot::Sender<Reply>) {
        if reply.is_closed() {
            // The kubelet has stopped waiting, and the event has failed: nothing may be begun.
            return;
        }
        match self.door.handle_call(&call, self.clock.now()) {
            Verdict::Unseen => self.parked.push_back((until, call, reply)),
            Verdict::Answer(answer, _) => send(&call, reply, answer),
        }
    }

    fn give_up_waiting(&mut self) {
        let now = Instant::now();
        while let Some((_, call, reply)) = self.parked.pop_front_if(|(until, ..)| *until <= now) {
            tracing::warn!(
                event = call.event,
                "called for a LifecycleEvent that the watch does not show"
            );
            send(&call, reply, Reply::Empty);
        }
    }

    fn handle_word(&mut self, word: Word) {
        if self.endpoints.handle_word(word) {
            self.rotation.used(Instant::now());
            self.tells
                .situation
                .send_modify(|situation| situation.registrations += 1);
        }
    }

    fn handle_stop(&mut self) {
        self.door.stop();
        self.stopping.ask(Instant::now());
    }

    /// Once a second.
    async fn tend(&mut self, now: Instant) -> Result<Step, SlmError> {
        let busy = self.door.is_busy();
        if self.stopping.is_asked() {
            let successor = self.stopping.wants_successor() && self.endpoints.has_sibling().await;
            // Where nobody but we claim, nobody calls while we are away.
            let step = self.stopping.step(
                now,
                busy && !self.claimant.is_driver(self.endpoints.standing()),
                successor,
            );
            if step == Step::Deregister {
                self.endpoints.deregister();
            }
            return Ok(step);
        }
        self.endpoints.tend(now, busy).await?;
        self.await_predecessor(now).await;
        let traffic = match (busy, self.door.is_awaited()) {
            (true, _) => Traffic::Busy,
            (false, true) => Traffic::Awaited,
            (false, false) => Traffic::Quiet,
        };
        if self.endpoints.is_settled() && self.rotation.is_due(now, traffic) {
            match self.endpoints.renew("the connection was not used for long") {
                Ok(()) => self.rotation.used(now),
                Err(error) => {
                    tracing::warn!(%error, source = error.source().map(ToString::to_string), "no new sockets");
                    self.rotation.postpone(now);
                }
            }
        }
        Ok(Step::Stay)
    }

    /// A rolling update starts us before it stops our predecessor: two must not work at one drain.
    async fn await_predecessor(&mut self, now: Instant) {
        let Waits::Predecessor(until) = self.waits else {
            return;
        };
        if self.endpoints.has_sibling().await {
            if now < until {
                return;
            }
            tracing::warn!("another instance of this driver has not stopped; going on beside it");
        }
        self.waits = Waits::LookBack((self.tells.look_back)());
    }

    fn release(&mut self, left: Option<Resume>) {
        self.waits = Waits::Nothing;
        self.door.release(left);
        self.tell_claimer(Heard::Stirred);
    }

    /// Hands on what the last thing brought about.
    fn pass_on(&mut self) {
        while let Some(output) = self.door.poll_output() {
            match output {
                Output::Demand(demand) => {
                    tracing::info!(?demand, "demand");
                    self.outbox.push_back(demand);
                }
                Output::Warn { reason, message } => self.warn(reason, message),
                // The kubelet does not say why an event failed; where we claim, the claimer does.
                Output::Refused { .. } if self.leads => {}
                Output::Refused { event, why } => {
                    self.warn("EventFailed", format!("LifecycleEvent {event} failed: {why}"));
                }
            }
        }
        let busy = self.door.is_busy();
        self.tells
            .situation
            .send_if_modified(|situation| std::mem::replace(&mut situation.busy, busy) != busy);
        let standing = self.endpoints.standing();
        self.tells.registration.send_if_modified(|shown| {
            let changed = shown != standing;
            shown.clone_from(standing);
            changed
        });
        self.lead();
    }

    fn warn(&self, reason: &'static str, message: String) {
        tracing::warn!(reason, "{message}");
        if self.tells.warnings.try_send((reason, message)).is_err() {
            tracing::warn!(reason, "too many warnings wait to be emitted as Events");
        }
    }

    /// Whether it is our part to claim. Never two of us: a predecessor ends first.
    fn lead(&mut self) {
        let alone = matches!(self.waits, Waits::Nothing) && !self.stopping.is_asked();
        self.tells
            .alone
            .send_if_modified(|shown| std::mem::replace(shown, alone) != alone);
        let leads = alone && self.claimant.is_driver(self.endpoints.standing());
        if std::mem::replace(&mut self.leads, leads) == leads {
            return;
        }
        tracing::info!(
            leads,
            "whether this driver claims LifecycleEvents in the place of the kubelet"
        );
        if leads {
            // What a registration is for transitions otherwise.
            self.tells
                .situation
                .send_modify(|situation| situation.registrations += 1);
        }
        self.tell_claimer(Heard::Lead(leads));
    }

    fn tell_claimer(&self, heard: Heard) {
        if self.tells.claimer.send(heard).is_err() {
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

impl Waits {
    /// What others have left, as soon as it is known.
    async fn left(&mut self) -> Option<Resume> {
        match self {
            Self::LookBack(look) => look.await,
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
