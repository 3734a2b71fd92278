//! Runs one engine: passes events in, commands to the edges, notices to the reporter. It decides nothing.
//!
//! Commands run concurrently as tasks of one set, so that dropping the runner ends them.

mod estimate;
mod findings;
mod peer_watch;
mod recorded;
pub mod shadows;
mod wakeups;

use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use scupper_engine::{
    Answer, Checkpoint, Command, CommandId, Event, Intent, Node, Notice, Outcome, Request, StepOutcome, Task,
    Time,
};
use scupper_pre_flight::{Finding, LocalVolumes};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use self::estimate::Estimates;
use self::peer_watch::PeerWatches;
use self::recorded::RecordedDrain;
use self::shadows::ShadowPlans;
use self::wakeups::{WakeupReason, answered, next_of};
use crate::last_known::LastKnown;
use crate::node_snapshot::NodeSnapshot;
use crate::notify::Notices;
use crate::orders::DrainOrders;
use crate::out_of_service::{KubeletLooks, TaintRemoval};
use crate::policy_calls::EngineDrainInfo;
use crate::pre_flight::{PreFlightCheck, RefusedReads};
use crate::reporter::{Reporter, trace};
use crate::{RunnerDeps, notify, out_of_service, policy_calls, pre_flight};
use scupper_forecast::NOTICE;
use scupper_lease::LeaseRecord;
use scupper_policy::{DrainFacts, DrainInfo, KnownPeers};
use scupper_policy_reload::Session;
use scupper_report::PolicyMessage;

/// A policy, and what a step of its hook has learned of pods on other nodes.
type LearnedPeers = (String, Vec<KnownPeers>);

/// Runs the engine of one drain to its end.
pub struct EngineRunner {
    deps: RunnerDeps,
    /// The policies of this drain; their code may be replaced between two calls.
    policies: Arc<Session>,
    drain: RecordedDrain,
    reporter: Reporter,
    /// What its planners have asked about the cluster.
    facts: DrainFacts,
    running: JoinSet<(CommandId, Answer)>,
    /// Changes of the node's volumes, once a list has shown some.
    volumes: Option<BoxStream<'static, Event>>,
    /// Pods on other nodes that hooks wait for.
    peers: PeerWatches,
    /// What the steps of hooks that wait have learned of such pods, by policy.
    learned: (
        mpsc::UnboundedSender<LearnedPeers>,
        mpsc::UnboundedReceiver<LearnedPeers>,
    ),
    /// The node as read for this run: the watch may first show an older one.
    first: Option<Node>,
    /// The orders that the engine knows.
    known_orders: DrainOrders,
    /// The limit of concurrent evictions that the engine knows.
    eviction_limit: usize,
    /// The first plan is still to be examined.
    is_pre_flight: bool,
    /// What is found in it, once it is known.
    findings: Option<BoxStream<'static, Vec<Finding>>>,
    /// What is known of them until then.
    likely: Vec<Finding>,
    /// When it will probably end.
    estimates: Estimates,
    /// What shadow policies would make of it.
    shadows: ShadowPlans,
    /// What the pre-flight check has read of volumes.
    local_volumes: watch::Sender<LocalVolumes>,
    /// Since when the pre-flight check may not read them.
    refused_reads: RefusedReads,
    /// What was seen of the kubelet of a machine that is off.
    kubelet_looks: KubeletLooks,
    /// Removes the taint of such a machine.
    taint_removal: TaintRemoval,
    /// Whom the drain has told that pods are to leave.
    notices: Notices,
    /// Cancels the drain if that kubelet gives a sign of life.
    sign_of_life: BoxStream<'static, Event>,
    /// What the node's Lease says that policies must undo.
    lease: LeaseRecord,
    /// What the next engine of this drain must know if this one is dropped.
    last_known: LastKnown,
}

impl EngineRunner {
    /// Of a drain that begins, or that is resumed from its mark.
    pub fn new(
        deps: RunnerDeps,
        policies: Arc<Session>,
        request: Request,
        resume: Option<Checkpoint>,
        reporter: Reporter,
    ) -> Self {
        let request = notify::planned(pre_flight::planned(request));
        let is_pre_flight = resume.is_none() && request.intent == Intent::Drain;
        let drain = RecordedDrain::begin(
            &deps.clock,
            &deps.recordings,
            request,
            resume,
            Arc::clone(&policies),
        );
        let kubelet_looks = KubeletLooks::default();
        let sign_of_life = out_of_service::sign_of_life(drain.request(), &deps.cluster, &kubelet_looks);
        Self {
            deps,
            policies,
            drain,
            reporter,
            facts: DrainFacts::default(),
            running: JoinSet::new(),
            volumes: None,
            peers: PeerWatches::default(),
            learned: mpsc::unbounded_channel(),
            first: None,
            known_orders: DrainOrders::default(),
            eviction_limit: 0,
            is_pre_flight,
            findings: None,
            likely: Vec::new(),
            estimates: Estimates::default(),
            shadows: ShadowPlans::default(),
            local_volumes: watch::Sender::default(),
            refused_reads: RefusedReads::default(),
            kubelet_looks,
            taint_removal: TaintRemoval::default(),
            notices: Notices::default(),
            sign_of_life: stream::once(sign_of_life).boxed(),
            lease: LeaseRecord::default(),
            last_known: LastKnown::default(),
        }
    }

    /// Takes over what the node's Lease says that policies must undo, and keeps it up to date.
    pub fn and_lease(mut self, lease: LeaseRecord) -> Self {
        let (left, own) = (lease.earlier.clone(), lease.own.clone());
        self.drain.recall_to_undo(self.deps.clock.now(), left, own);
        self.lease = lease;
        self
    }

    /// Continues what earlier engines of this drain knew, and keeps it up to date.
    pub fn and_last_known(mut self, last_known: LastKnown) -> Self {
        self.last_known = last_known;
        self
    }

    /// Starts with the node as it was read.
    pub fn and_node(mut self, node: Option<Node>) -> Self {
        self.first = node;
        self
    }

    /// Runs until the drain has ended, or until `orders` is closed. Log lines meanwhile name the drain.
    pub async fn run(self, orders: watch::Receiver<DrainOrders>) -> Option<Outcome> {
        let span = trace::span(self.drain.request());
        self.run_loop(orders).instrument(span).await
    }

    async fn run_loop(mut self, mut orders: watch::Receiver<DrainOrders>) -> Option<Outcome> {
        // This engine knows none of them yet.
        orders.mark_changed();
        let node = self.drain.request().node.clone();
        let cluster = &self.deps.cluster;
        let mut watch = match &self.deps.watched_node {
            Some(own) => stream::select(cluster.watch_pods(&node), own.events()).boxed(),
            None => cluster.watch(&node).boxed(),
        };
        let pulse = self.deps.health.pulse("drain");
        let mut ended = None;
        loop {
            pulse.beat();
            self.update_eviction_limit();
            self.reporter
                .on_policy_messages(self.deps.clock.now(), &self.deps.policy_messages.take(&node));
            self.drain_engine_output(&node, &mut ended);
            self.drain.end_turn();
            self.lease.update(&self.drain);
            self.last_known.update(&self.drain);
            self.estimate_again(self.deps.clock.now());
            self.reporter.on_turn(self.deps.clock.now(), &self.drain);
            if ended.is_some() && self.running.is_empty() && !self.taint_removal.is_under_way() {
                self.reporter.end(self.deps.clock.now(), &self.drain).await;
                self.drain.end().await;
                return ended;
            }
            match self.next(&mut watch, &mut orders).await {
                WakeupReason::Event(event) => {
                    // Only once the watch works: a drain that would miss an uncordon or a cancel does not begin.
                    if let Some(node) = self.first.take_if(|_| matches!(event, Event::Node(_))) {
                        self.handle(Event::Node(Some(node)));
                    }
                    self.follow_volumes(&node, &event);
                    self.handle(event);
                }
                WakeupReason::Learned(policy, known) => self.peers.set(&self.deps.cluster, &policy, known),
                WakeupReason::Found(findings) => self.report_found(&findings),
                WakeupReason::Estimated(found) => self.estimated(found),
                WakeupReason::ShadowPlanned(plan) => self.shadow_planned(plan),
                WakeupReason::TaintRemoved => {}
                WakeupReason::OrdersChanged => self.obey(orders.borrow_and_update().clone()),
                WakeupReason::Timeout => self.drain.handle_timeout(self.deps.clock.now()),
                WakeupReason::Abandoned => return ended,
            }
        }
    }

    /// Every answer to an eviction, of this drain or of another one in this process, may change it.
    fn update_eviction_limit(&mut self) {
        let limit = self.deps.cluster.evictions_at_once();
        if std::mem::replace(&mut self.eviction_limit, limit) != limit {
            self.drain
                .handle_event(self.deps.clock.now(), Event::EvictionLimit(limit));
        }
    }

    /// The runner watches volumes only while a drain waits for some, because the watch covers all nodes.
    fn follow_volumes(&mut self, node: &str, event: &Event) {
        if let Event::Answer(_, Answer::Volumes(volumes)) = event
            && !volumes.is_empty()
            && self.volumes.is_none()
        {
            self.volumes = Some(self.deps.cluster.volume_changes(node).boxed());
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.deps.clock.now();
        self.reporter.on_event(now, &event);
        let order = out_of_service::order(self.drain.request(), self.drain.is_untouched(), &event);
        self.drain.handle_event(now, event);
        if let Some(order) = order {
            self.drain.handle_event(now, order);
        }
    }

    fn obey(&mut self, orders: DrainOrders) {
        for event in orders.events_since(&self.known_orders) {
            self.handle(event);
        }
        self.known_orders = orders;
    }

    /// Takes all commands and notices that the engine has now.
    fn drain_engine_output(&mut self, node: &str, ended: &mut Option<Outcome>) {
        loop {
            let now = self.deps.clock.now();
            self.taint_removal
                .follow(&self.drain, now, &self.deps.cluster, &self.deps.policy_messages);
            let mut quiet = true;
            while let Some(command) = self.drain.poll_command() {
                quiet = false;
                self.carry_out(node, command, now);
            }
            while let Some(notice) = self.drain.poll_notice(now) {
                quiet = false;
                if let Notice::Finished { outcome, .. } = &notice {
                    *ended = Some(outcome.clone());
                    self.estimates.end();
                    self.end_shadows();
                    let likely = std::mem::take(&mut self.likely);
                    if self.findings.is_some() {
                        self.report_found(&likely);
                    }
                }
                self.reporter.on_notice(now, self.drain.request(), &notice);
                if let Notice::Planned(plan) = &notice {
                    self.estimate_by(now, plan);
                    if std::mem::take(&mut self.is_pre_flight) {
                        self.report_findings(now, plan);
                        self.begin_shadows(now);
                    }
                }
            }
            if quiet {
                return;
            }
        }
    }

    async fn next(
        &mut self,
        watch: &mut (impl Stream<Item = Event> + Unpin),
        orders: &mut watch::Receiver<DrainOrders>,
    ) -> WakeupReason {
        let timer = self.drain.poll_timeout();
        let timer = timer.map(|at| at.since(self.deps.clock.now()));
        // Not a poll: every event wakes the loop. Only to show that it turns, and how long each pod has waited.
        let beat = self.reporter.beat();
        let wait = timer.map_or(beat, |timer| timer.min(beat));
        // DrainOrders first: a cancelled drain must not evict because a watch is busy.
        tokio::select! {
            biased;
            changed = orders.changed() => changed.map_or(WakeupReason::Abandoned, |()| WakeupReason::OrdersChanged),
            Some(findings) = next_of(&mut self.findings) => WakeupReason::Found(findings),
            found = self.estimates.next() => WakeupReason::Estimated(found),
            plan = self.shadows.next() => WakeupReason::ShadowPlanned(plan),
            Some(answer) = self.running.join_next(), if !self.running.is_empty() => WakeupReason::Event(answered(answer)),
            () = self.taint_removal.end() => WakeupReason::TaintRemoved,
            Some(event) = watch.next() => WakeupReason::Event(event),
            Some(event) = next_of(&mut self.volumes) => WakeupReason::Event(event),
            Some(event) = self.sign_of_life.next() => WakeupReason::Event(event),
            Some((policy, known)) = self.learned.1.recv() => WakeupReason::Learned(policy, known),
            event = self.peers.next() => WakeupReason::Event(event),
            () = tokio::time::sleep(wait) => WakeupReason::Timeout,
        }
    }

    fn carry_out(&mut self, node: &str, command: Command, now: Time) {
        self.reporter.on_command(now, &command);
        let Command { id, task } = command;
        match task {
            Task::Plan { policy, draft } if policy == pre_flight::PLANNER => {
                let (known, cluster) = (PreFlightCheck::of(&self.drain, now), self.deps.cluster.clone());
                let local_volumes = self.local_volumes.clone();
                let refused_reads = self.refused_reads.clone();
                let limit = self.drain.request().settings.forbidden_timeout;
                let planning = async move {
                    let (answer, volumes) = known.answer(&cluster, draft, &refused_reads, limit).await;
                    local_volumes.send_replace(volumes);
                    (id, Answer::Plan(answer))
                };
                self.running.spawn(planning.in_current_span());
            }
            Task::ChooseSurges { plan } => {
                let (known, cluster) = (PreFlightCheck::of(&self.drain, now), self.deps.cluster.clone());
                let choosing = async move { (id, known.choose_surges(&cluster, &plan).await) };
                self.running.spawn(choosing.in_current_span());
            }
            Task::Plan { policy, draft } if policy == out_of_service::POLICY => {
                let (node, cluster) = (node.to_owned(), self.deps.cluster.clone());
                let looks = self.kubelet_looks.clone();
                let limit = self.drain.request().settings.forbidden_timeout;
                let planning = async move {
                    let answer = out_of_service::plan(&cluster, &node, draft, &looks, limit).await;
                    (id, Answer::Plan(answer))
                };
                self.running.spawn(planning.in_current_span());
            }
            Task::Plan { policy, draft } if policy == NOTICE => {
                let answer = notify::plan(&self.drain, now, draft);
                self.running.spawn(async move { (id, Answer::Plan(answer)) });
            }
            Task::Plan { policy, draft } => {
                let shown = NodeSnapshot::for_planner(&self.drain);
                let (request, started, state) = self.drain_info();
                let policies = Arc::clone(&self.policies);
                let facts = self.facts.of_plan(self.drain.chains_begun(), now);
                let log = self.drain.facts().clone();
                let planning = async move {
                    let info = DrainInfo {
                        facts: Some(&facts),
                        ..policy_calls::info(&request, started, state, now)
                    };
                    let answer =
                        policy_calls::plan(&policies, info, &shown, &request.settings, (&policy, &draft))
                            .await;
                    log.learned(&policy, || facts.objects());
                    (id, Answer::Plan(answer))
                };
                self.running.spawn(planning.in_current_span());
            }
            Task::Step { step, .. } if out_of_service::removes(&step) => {
                let removing = self.taint_removal.outcome();
                self.take_own_step(id, async move { (removing.await, None) });
            }
            Task::Step { step, .. } if step.policy == out_of_service::POLICY => {
                let taking = out_of_service::Step {
                    cluster: self.deps.cluster.clone(),
                    node: self.drain.node().cloned(),
                    looks: self.kubelet_looks.clone(),
                    drain: self.drain.request().id.clone(),
                    setting: self.taint_removal.setting(),
                };
                self.take_own_step(id, taking.take());
            }
            Task::Step { step, .. } if step.policy == NOTICE => {
                let started = self.reporter.started();
                let taking = notify::Step::of(&self.deps, &self.drain, &self.notices, started, &step);
                self.take_own_step(id, taking.take());
            }
            Task::Step { step, state_version } => {
                let shown = NodeSnapshot::for_hook(&self.drain);
                let (request, started, state) = self.drain_info();
                let policies = Arc::clone(&self.policies);
                let (learned, log) = (self.learned.0.clone(), self.drain.facts().clone());
                let stepping = async move {
                    let facts = Arc::default();
                    let info = DrainInfo {
                        facts: Some(&facts),
                        ..policy_calls::info(&request, started, state, now)
                    };
                    let answer = policy_calls::step(&policies, info, &shown, (&step, state_version)).await;
                    log.learned(&step.policy, || facts.objects());
                    let waits = |outcome: &StepOutcome| matches!(outcome, StepOutcome::Pending { .. });
                    let known = match &answer {
                        Answer::Step { outcome, .. } if waits(outcome) => facts.known_peers(),
                        _ => Vec::new(),
                    };
                    // It is closed only when the drain has ended.
                    let _ended = learned.send((step.policy.clone(), known));
                    (id, answer)
                };
                self.running.spawn(stepping.in_current_span());
            }
            task => {
                let (node, cluster) = (node.to_owned(), self.deps.cluster.clone());
                let performing = async move { (id, cluster.perform(&node, &task).await) };
                self.running.spawn(performing.in_current_span());
            }
        }
    }

    /// Takes a step of a hook of the host's own.
    fn take_own_step(
        &mut self,
        id: CommandId,
        step: impl Future<Output = (StepOutcome, Option<PolicyMessage>)> + Send + 'static,
    ) {
        let (node, messages) = (
            self.drain.request().node.clone(),
            self.deps.policy_messages.clone(),
        );
        let stepping = async move {
            let (outcome, said) = step.await;
            if let Some(said) = said {
                messages.add(&node, said);
            }
            let state_version = None;
            (
                id,
                Answer::Step {
                    outcome,
                    state_version,
                },
            )
        };
        self.running.spawn(stepping.in_current_span());
    }

    /// What a call of a policy needs to know of the drain.
    fn drain_info(&self) -> (Request, Time, EngineDrainInfo) {
        (
            self.drain.request().clone(),
            self.reporter.started(),
            EngineDrainInfo::of(&self.drain),
        )
    }
}
