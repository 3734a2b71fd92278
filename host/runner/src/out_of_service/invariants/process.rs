//! One process of the drain: an engine, with the planner, the hooks and the cancellation of this module around it, as the
//! runner has them.

use std::sync::Arc;
use std::time::Duration;

use scupper_common::clock::Clock;
use scupper_engine::{
    Answer, Checkpoint, Command, CommandId, Drain, Event, EvictAnswer, HookPhase, Node, Notice, Outcome, Pod,
    PodRef, PolicyInfo, Request, StepOutcome, Task,
};
use scupper_report::fixture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::Mutation;
use super::world::{NODE, Shared, cluster};
use crate::out_of_service::{
    KubeletLooks, POLICY, Step, TaintRemoval, again, order, plan, planned, removes, sign_of_life,
};
use crate::reporter::policy_messages::PolicyMessages;
use scupper_cluster::Cluster;

/// A policy whose hook takes a while between the cordon and the taint, and whose cancel hook may take longer than the end of
/// a drain waits for it.
const SLOW: &str = "slow";

const SLOW_CANCEL: Duration = Duration::from_secs(25);

/// How its cancel hook ends.
#[derive(Clone, Copy)]
enum Cancels {
    Soon,
    Slowly,
    Never,
}

/// See the module.
pub(super) struct Process {
    world: Shared,
    mutation: Option<Mutation>,
    cancels: Cancels,
    cluster: Cluster,
    looks: KubeletLooks,
    removal: TaintRemoval,
    clock: Clock,
    drain: Drain,
    running: JoinSet<(CommandId, Answer)>,
    sender: mpsc::UnboundedSender<Event>,
    events: mpsc::UnboundedReceiver<Event>,
    _watching: JoinSet<()>,
}

impl Process {
    pub(super) fn start(
        world: &Shared,
        clock: Clock,
        mut request: Request,
        node: Option<&Node>,
        resume: Option<Checkpoint>,
        mutation: Option<Mutation>,
    ) -> Self {
        request.policies = vec![PolicyInfo {
            name: SLOW.to_owned(),
            phases: vec![HookPhase::BeforeDrain, HookPhase::OnCancel],
            ..PolicyInfo::default()
        }];
        let mut request = planned(request, node);
        if mutation == Some(Mutation::NeedsNoWord) {
            request.policies.push(PolicyInfo {
                name: POLICY.to_owned(),
                phases: vec![HookPhase::BeforeDrain, HookPhase::OnCancel],
                ..PolicyInfo::default()
            });
        }
        let cancels = match world.lock().unwrap().below(3) {
            0 => Cancels::Slowly,
            1 => Cancels::Never,
            _ => Cancels::Soon,
        };
        world.lock().unwrap().word |= request.settings.machine_is_off;
        let now = clock.now();
        let drain = match resume {
            Some(checkpoint) => Drain::resume(now, request, checkpoint),
            None => Drain::new(now, request),
        };
        let (sender, events) = mpsc::unbounded_channel();
        let (cluster, looks) = (cluster(world, clock), KubeletLooks::default());
        let mut watching = JoinSet::new();
        let is_deaf = matches!(
            mutation,
            Some(Mutation::IgnoresRenewals | Mutation::IgnoresReady | Mutation::ForgetsItsMark)
        );
        if !is_deaf {
            let (sign, sender) = (sign_of_life(drain.request(), &cluster, &looks), sender.clone());
            // The process may have ended.
            watching.spawn(async move { sender.send(sign.await).unwrap_or_default() });
        }
        watching.spawn(watch(Arc::clone(world), cluster.clone(), sender.clone()));
        Self {
            world: Arc::clone(world),
            mutation,
            cancels,
            cluster,
            looks,
            removal: TaintRemoval::default(),
            clock,
            drain,
            running: JoinSet::new(),
            sender,
            events,
            _watching: watching,
        }
    }

    /// Sends it a cancel.
    pub(super) fn orders(&self) -> mpsc::UnboundedSender<Event> {
        self.sender.clone()
    }

    /// Runs it to its end, or until it is killed.
    pub(super) async fn run(mut self, killed: Option<Instant>) -> Option<Outcome> {
        let never = Instant::now() + Duration::from_secs(3600);
        let mut ended = None;
        loop {
            if !matches!(
                self.mutation,
                Some(Mutation::RemovesNothing | Mutation::WaitsForItsTurn)
            ) {
                self.remove_taint();
            }
            while let Some(command) = self.drain.poll_command() {
                self.carry_out(command);
            }
            while let Some(notice) = self.drain.poll_notice() {
                if let Notice::Finished { outcome, .. } = notice {
                    ended = Some(outcome);
                }
            }
            if self.drain.outcome() == Some(&Outcome::Drained) {
                // It keeps its taint, however long its last write takes.
                self.world.lock().unwrap().alive_since = None;
            }
            if ended.is_some() && self.running.is_empty() && !self.removal.is_under_way() {
                return ended;
            }
            let timer = self.drain.poll_timeout().map(|at| at.since(self.clock.now()));
            let timer = timer.unwrap_or(Duration::from_secs(60));
            tokio::select! {
                biased;
                () = sleep_until(killed.unwrap_or(never)) => return None,
                Some(answer) = self.running.join_next(), if !self.running.is_empty() => {
                    let (id, answer) = answer.unwrap();
                    self.handle(Event::Answer(id, answer));
                }
                () = self.removal.end() => {}
                Some(event) = self.events.recv() => self.handle(event),
                () = sleep(timer) => self.drain.handle_timeout(self.clock.now()),
            }
        }
    }

    fn remove_taint(&mut self) {
        let messages = PolicyMessages::default();
        self.removal
            .follow(&self.drain, self.clock.now(), &self.cluster, &messages);
    }

    fn handle(&mut self, event: Event) {
        let now = self.clock.now();
        let order = order(self.drain.request(), self.drain.is_untouched(), &event);
        self.drain.handle_event(now, event);
        let is_heeded = match self.mutation {
            Some(Mutation::IgnoresReady) => false,
            Some(Mutation::ForgetsItsMark) => self.drain.request().settings.machine_is_off,
            _ => true,
        };
        if let Some(order) = order.filter(|_| is_heeded) {
            self.drain.handle_event(now, order);
        }
    }

    fn carry_out(&mut self, Command { id, task }: Command) {
        let answer = match task {
            Task::Plan { policy, draft } if policy == POLICY => {
                let (cluster, looks) = (self.cluster.clone(), self.looks.clone());
                self.running.spawn(async move {
                    let answer = plan(&cluster, NODE, draft, &looks, Duration::ZERO).await;
                    (id, Answer::Plan(answer))
                });
                return;
            }
            Task::Step { step, .. } if removes(&step) => {
                if self.mutation == Some(Mutation::WaitsForItsTurn) {
                    self.remove_taint();
                }
                let removing = self.removal.outcome();
                self.running.spawn(async move { (id, stepped(removing.await)) });
                return;
            }
            Task::Step { step, .. } if step.policy == POLICY => {
                let step = Step {
                    cluster: self.cluster.clone(),
                    node: self.drain.node().cloned(),
                    looks: self.looks.clone(),
                    drain: self.drain.request().id.clone(),
                    setting: self.removal.setting(),
                };
                self.running
                    .spawn(async move { (id, stepped(step.take().await.0)) });
                return;
            }
            Task::Step { step, .. } => {
                let mut world = self.world.lock().unwrap();
                let is_cancel = step.phase == HookPhase::OnCancel;
                let (pause, outcome) = match self.cancels {
                    Cancels::Slowly if is_cancel => (SLOW_CANCEL, StepOutcome::Done),
                    Cancels::Never if is_cancel => {
                        (Duration::ZERO, again("it is not reverted yet".to_owned()))
                    }
                    _ => (world.millis(6_000), StepOutcome::Done),
                };
                self.running.spawn(async move {
                    sleep(pause).await;
                    (id, stepped(outcome))
                });
                return;
            }
            Task::Evict { pod, .. } | Task::Delete { pod, .. } => self.remove(&pod),
            Task::ListPods => Answer::Pods(pods(&self.world)),
            task => {
                let cluster = self.cluster.clone();
                self.running
                    .spawn(async move { (id, cluster.perform(NODE, &task).await) });
                return;
            }
        };
        self.running.spawn(async move { (id, answer) });
    }

    /// Some pods are gone soon, some after a while, some never.
    fn remove(&self, pod: &PodRef) -> Answer {
        let mut world = self.world.lock().unwrap();
        let takes = match world.below(3) {
            0 => Duration::from_secs(3600),
            _ => world.millis(12_000),
        };
        let gone = Instant::now() + takes;
        let gone = match world.pods.get_mut(&pod.uid) {
            Some(known) => *known.get_or_insert(gone),
            None => gone,
        };
        let (sender, uid) = (self.sender.clone(), pod.uid.clone());
        tokio::spawn(async move {
            sleep_until(gone).await;
            // The process may be dead.
            sender.send(Event::PodDeleted(uid)).unwrap_or_default();
        });
        Answer::Evict(EvictAnswer::Accepted)
    }
}

fn stepped(outcome: StepOutcome) -> Answer {
    Answer::Step {
        outcome,
        state_version: None,
    }
}

/// The pods that are not gone yet.
fn pods(world: &Shared) -> Vec<Pod> {
    let now = Instant::now();
    let world = world.lock().unwrap();
    let here = world
        .pods
        .iter()
        .filter(|(_, gone)| gone.is_none_or(|gone| gone > now));
    here.map(|(uid, _)| fixture::running(uid.as_str())).collect()
}

/// The first lists, and the node after each change: late, and not each version of it.
async fn watch(world: Shared, cluster: Cluster, events: mpsc::UnboundedSender<Event>) {
    let mut changed = world.lock().unwrap().changed.subscribe();
    for event in [Event::Pods(pods(&world)), Event::Budgets(Vec::new())] {
        events.send(event).unwrap_or_default();
    }
    loop {
        if let Ok(node) = cluster.node(NODE).await
            && events.send(Event::Node(node)).is_err()
        {
            return;
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}
