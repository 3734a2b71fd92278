//! One drain of one node: the state machine behind the five verbs.
//!
//! ```text
//! Planning ─► Preparing ─► Cordoning ─► Holding ─► Evicting ◄─► Verifying ─► Finished
//!     │            └───────────┴───────────┴──────────┴────────────┴─► RollingBack ─► Finished
//!     └─► Uncordoning ─► Finished
//! ```
//!
//! Every event first changes the state (`events`), and then the engine looks at the whole state (`phases`): what can be done
//! now is done. So an event that comes late, twice or out of order is harmless, and a drain that is taken up from a
//! checkpoint goes on by itself.

mod answers;
mod backoff;
mod begun;
mod budget_tracker;
mod checkpoint_state;
mod choosing;
mod cluster_state;
mod cordon;
mod cordon_state;
mod counts;
mod ending;
mod events;
mod evict;
mod eviction_target;
mod forbidden;
mod forcing;
mod hook_state;
mod hooks;
mod late_pods;
mod measure;
mod newcomers;
mod node_state;
mod outbox;
mod phases;
mod plan_state;
mod planning;
mod raising;
mod refused;
mod replies;
mod restore;
mod returning;
mod save_limiter;
mod saving;
mod skipping;
mod steps;
mod surge;
mod throttle;
mod timers;
mod uncordon;
mod undoing;
mod verify;
mod volumes;
mod waiting;
mod wave_run;
mod waves;
mod writes;

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{
    Begun, Budget, Checkpoint, Command, Counts, Event, Intent, Node, Notice, Outcome, Phase, Pod, PodRef,
    Reason, Request, Time,
};

/// One drain (or uncordon) of one node.
#[derive(Debug)]
pub struct Drain {
    request: Request,
    now: Time,
    started: Time,
    phase: Phase,
    /// Where an earlier process left it.
    resumed: Option<Phase>,
    /// What an earlier process last counted, until the plan is agreed.
    restored_counts: Option<Counts>,
    /// What an earlier process had begun, until the plan is agreed.
    restored_begun: Option<Begun>,
    outcome: Option<Outcome>,
    ending: ending::Ending,
    paused: bool,
    /// How many evictions at once the API server bears.
    eviction_limit: usize,
    cluster: cluster_state::ClusterState,
    outbox: outbox::Outbox,
    checkpoint_state: checkpoint_state::CheckpointState,
    writer: writes::Writer,
    cordon: cordon_state::CordonState,
    uncordon: uncordon::UncordonStep,
    chain: Option<planning::Chain>,
    /// How many chains of planners have begun.
    chains_begun: u64,
    newcomers: newcomers::Newcomers,
    refused: refused::RefusedPods,
    plan_state: plan_state::PlanState,
    hooks: hook_state::Hooks,
    waits: measure::Waits,
    budget_tracker: budget_tracker::BudgetTracker,
    throttle: throttle::Throttle,
    verification: verify::Verification,
    volumes: volumes::VolumeState,
    forcing: forcing::Forcing,
    surges: surge::Surges,
    raises: raising::Raises,
    reported_reasons: waiting::ReportedReasons,
    /// The next timer, where an event that passed by has asked for it.
    timer: Option<Option<Time>>,
}

impl Drain {
    /// A drain that begins now. It first waits for [`Event::Node`], [`Event::Pods`] and [`Event::Budgets`].
    pub fn new(now: Time, request: Request) -> Self {
        let mut drain = Self::idle(now, request);
        drain.outbox.notify(Notice::Phase(Phase::Planning));
        drain.advance();
        drain
    }

    /// A drain that continues from a checkpoint. Hooks that have finished are not called again.
    pub fn resume(now: Time, request: Request, checkpoint: Checkpoint) -> Self {
        let mut drain = Self::idle(now, request);
        drain.outbox.notify(Notice::Phase(Phase::Planning));
        if checkpoint.id == drain.request.id {
            let outcome = checkpoint.outcome();
            drain.restore(checkpoint);
            if let Some(outcome) = outcome {
                drain.stop(outcome);
            }
        }
        drain.advance();
        drain
    }

    /// Something happened.
    pub fn handle_event(&mut self, now: Time, event: Event) {
        self.handle_events(now, [event]);
    }

    /// All this happened, in this order. The engine looks at its state once, after the last of it.
    pub fn handle_events(&mut self, now: Time, events: impl IntoIterator<Item = Event>) {
        if self.phase.is_last() {
            return;
        }
        let mut events = events.into_iter().peekable();
        let mut is_news = match events.peek() {
            Some(event) => !self.is_elsewhere(event) || self.is_due(now),
            None => false,
        };
        self.now = self.now.max(now);
        for event in events {
            if self.phase.is_last() {
                break;
            }
            is_news = is_news || !self.is_elsewhere(&event);
            // Whatever happens after the deadline comes too late, except that the deadline itself has moved.
            if !matches!(event, Event::Deadline(_)) {
                self.check_deadline();
            }
            self.apply(event);
        }
        if is_news {
            self.advance();
        }
    }

    /// A timer has ended by then. Once the time has moved on it would not be named again, so what it was for is done now.
    fn is_due(&mut self, now: Time) -> bool {
        let timer = self.poll_timeout();
        self.timer = Some(timer);
        timer.is_some_and(|timer| timer <= now)
    }

    /// It is of a budget of pods on other nodes: those of a large cluster change all the time.
    fn is_elsewhere(&self, event: &Event) -> bool {
        matches!(event, Event::BudgetApplied(budget) if !self.cluster.is_budget_of_pods(budget))
    }

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come. Harmless when called early.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.advance();
    }

    /// The next thing to do.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.outbox.pop()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timer.unwrap_or_else(|| self.next_timer())
    }

    /// The next thing to report.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.outbox.next_notice()
    }

    /// The request, with its current deadline.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The node as the engine knows it.
    pub fn node(&self) -> Option<&Node> {
        self.cluster.node()
    }

    /// All pods of the node as the engine knows them.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.cluster.pods().values().map(Arc::as_ref)
    }

    /// All budgets as the engine knows them.
    pub fn budgets(&self) -> impl Iterator<Item = &Budget> {
        self.cluster.all_budgets().map(|(_, budget)| budget)
    }

    /// Its phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How it ended, as soon as that is known: hooks may still put things back then, until
    /// [`Notice::Finished`] comes.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// An earlier drain of ours had drained the node when this one found it, and it has been cordoned since.
    pub fn found_drained(&self) -> bool {
        self.checkpoint_state.found_drained()
    }

    /// Every pod that is still on the node, and why.
    pub fn waiting(&self) -> Vec<(PodRef, Reason)> {
        match self.request.intent {
            Intent::Drain => self.reasons(),
            Intent::Uncordon => Vec::new(),
        }
    }

    fn idle(now: Time, request: Request) -> Self {
        Self {
            now,
            started: now,
            phase: Phase::Planning,
            resumed: None,
            restored_counts: None,
            restored_begun: None,
            outcome: None,
            ending: ending::Ending::new(now),
            paused: false,
            eviction_limit: usize::MAX,
            cluster: cluster_state::ClusterState::new(request.node.clone()),
            outbox: outbox::Outbox::default(),
            checkpoint_state: checkpoint_state::CheckpointState::default(),
            writer: writes::Writer::default(),
            cordon: cordon_state::CordonState::default(),
            uncordon: uncordon::UncordonStep::default(),
            chain: None,
            chains_begun: 0,
            newcomers: newcomers::Newcomers::default(),
            refused: refused::RefusedPods::default(),
            plan_state: plan_state::PlanState::default(),
            hooks: hook_state::Hooks::default(),
            waits: measure::Waits::default(),
            budget_tracker: budget_tracker::BudgetTracker::default(),
            throttle: throttle::Throttle::default(),
            verification: verify::Verification::default(),
            volumes: volumes::VolumeState::default(),
            forcing: forcing::Forcing::default(),
            surges: surge::Surges::default(),
            raises: raising::Raises::default(),
            reported_reasons: waiting::ReportedReasons::default(),
            timer: None,
            request,
        }
    }
}
