//! The door at work: one task that hears everything and answers at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use super::claim::{Call, Reply, Verdict};
use super::door::{Door, Output};
use super::endpoints::Endpoints;
use super::keeper::{self, Situation};
use super::registration::{Registration, Word};
use super::rotate::{Rotation, Traffic};
use super::service::Asked;
use super::stop::{Step, Stopping};
use super::transitions::{self, Transitions};
use super::{Board, LifecycleChange, SlmError, SlmOptions, TransitionChange};
use crate::clock::Clock;
use crate::triggers::{Demand, Resume, Standing};

/// Calls that may wait; the kubelet makes one at a time.
const CALLS: usize = 16;
/// Warnings that may wait.
const WARNINGS: usize = 16;
/// How long a call waits for its event to come into view.
const IN_VIEW_WITHIN: Duration = Duration::from_secs(1);
/// How often the sockets and the connection are looked after.
const TICK: Duration = Duration::from_secs(1);

/// Below this most drains end `SlaExpired`.
const SHORTEST_SENSIBLE_SLA: Duration = Duration::from_secs(60);

/// What connects the door with the rest of the driver.
pub struct Wires<E, T> {
    /// The LifecycleEvents of this node.
    pub events: E,
    /// The LifecycleTransitions of this driver.
    pub transitions: T,
    /// Where wishes go.
    pub demands: mpsc::Sender<Demand>,
    /// What the driver is at.
    pub standing: watch::Receiver<Standing>,
    /// How it stands between the kubelet and us.
    pub registration: watch::Sender<Registration>,
    /// What a former process was at.
    pub resume: Option<Resume>,
}

/// Serves the kubelet until `stop`, and then until a successor is there or the grace is over.
///
/// # Errors
/// The first thing without which the door cannot work.
pub async fn run<E, T>(
    options: SlmOptions,
    board: Arc<dyn Board>,
    wires: Wires<E, T>,
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
    let Wires {
        events,
        transitions,
        demands,
        standing,
        registration,
        resume,
    } = wires;
    let (calls, inbox) = mpsc::channel(CALLS);
    let (words, heard) = mpsc::unbounded_channel();
    let (warnings, warned) = mpsc::channel(WARNINGS);
    let (situation, situations) = watch::channel(Situation::default());

    let endpoints = tokio::select! {
        opened = Endpoints::open(&options, calls, words) => opened?,
        () = stop.cancelled() => return Ok(()),
    };
    let keeping = keeper::keep(
        Transitions::new(&options),
        Arc::clone(&board),
        transitions,
        situations,
    );
    let keeping = tokio::spawn(keeping);
    let warning = tokio::spawn(keeper::warn_people(board, warned));

    let door = Door::new(
        transitions::identity(&options),
        transitions::lengths(&options),
        resume,
    );
    let desk = Desk {
        clock: options.clock,
        door,
        endpoints,
        rotation: Rotation::new(options.rotate_after, Instant::now()),
        parked: VecDeque::new(),
        outbox: VecDeque::new(),
        warnings,
        situation,
        registration,
        stopping: Stopping::new(options.stop_grace),
    };
    let ended = desk.work(events, inbox, heard, demands, standing, stop).await;
    keeping.abort();
    warning.abort();
    ended
}

/// Everything the one task holds.
struct Desk {
    clock: Clock,
    door: Door,
    endpoints: Endpoints,
    rotation: Rotation,
    /// Calls whose event has not come into view, and until when they wait.
    parked: VecDeque<(Instant, Call, oneshot::Sender<Reply>)>,
    /// Demands that the driver has not taken yet.
    outbox: VecDeque<Demand>,
    warnings: mpsc::Sender<(&'static str, String)>,
    situation: watch::Sender<Situation>,
    registration: watch::Sender<Registration>,
    stopping: Stopping,
}

impl Desk {
    async fn work(
        mut self,
        mut events: impl Stream<Item = LifecycleChange> + Unpin,
        mut inbox: mpsc::Receiver<Asked>,
        mut heard: mpsc::UnboundedReceiver<Word>,
        demands: mpsc::Sender<Demand>,
        mut standing: watch::Receiver<Standing>,
        stop: CancellationToken,
    ) -> Result<(), SlmError> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.door.handle_standing(standing.borrow_and_update().clone());
        loop {
            let until = self.parked.front().map(|(until, ..)| *until);
            tokio::select! {
                biased;
                changed = standing.changed() => match changed {
                    Ok(()) => self.door.handle_standing(standing.borrow_and_update().clone()),
                    Err(_) => return self.broken("driver's standing").await,
                },
                change = events.next() => match change {
                    Some(change) => self.handle_change(change),
                    None => return self.broken("watch of LifecycleEvents").await,
                },
                Some(Asked { call, reply }) = inbox.recv() => {
                    self.rotation.used(Instant::now());
                    self.answer(Instant::now() + IN_VIEW_WITHIN, call, reply);
                }
                Some(word) = heard.recv() => self.handle_word(word),
                permit = demands.reserve(), if !self.outbox.is_empty() => match permit {
                    Ok(permit) => if let Some(demand) = self.outbox.pop_front() {
                        permit.send(demand);
                    },
                    Err(_) => return self.broken("driver's list of demands").await,
                },
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
            self.situation
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
            let successor = self.stopping.wants_successor() && self.endpoints.has_successor().await;
            let step = self.stopping.step(now, busy, successor);
            if step == Step::Deregister {
                self.endpoints.deregister();
            }
            return Ok(step);
        }
        self.endpoints.tend(now, busy).await?;
        let traffic = match (busy, self.door.is_awaited()) {
            (true, _) => Traffic::Busy,
            (false, true) => Traffic::Awaited,
            (false, false) => Traffic::Quiet,
        };
        if self.endpoints.is_settled() && self.rotation.is_due(now, traffic) {
            self.endpoints.renew("the connection was not used for long")?;
            self.rotation.used(now);
        }
        Ok(Step::Stay)
    }

    /// Hands on what the last thing brought about.
    fn pass_on(&mut self) {
        while let Some(output) = self.door.poll_output() {
            match output {
                Output::Demand(demand) => {
                    tracing::info!(?demand, "demand");
                    self.outbox.push_back(demand);
                }
                Output::Warn { reason, message } => {
                    tracing::warn!(reason, "{message}");
                    if self.warnings.try_send((reason, message)).is_err() {
                        tracing::warn!(reason, "too many warnings wait to be emitted as Events");
                    }
                }
            }
        }
        let busy = self.door.is_busy();
        self.situation
            .send_if_modified(|situation| std::mem::replace(&mut situation.busy, busy) != busy);
        let standing = self.endpoints.standing();
        self.registration.send_if_modified(|shown| {
            let changed = shown != standing;
            shown.clone_from(standing);
            changed
        });
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

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
