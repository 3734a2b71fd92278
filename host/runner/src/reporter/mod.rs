//! Reports one drain: lines, log, node conditions, Events, metrics, trace and status. Separate
//! tasks write to the API server, so that it never delays the drain; only the end waits for them.

mod estimates;
mod holds;
pub mod policy_messages;
mod shadows;
mod status_publisher;
pub(crate) mod trace;
pub mod write_retry;
pub(crate) mod writer;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use scupper_api::NodeCondition;
use scupper_engine::{
    Answer, Checkpoint, Command, Drain, Event, Intent, Node, Notice, Outcome, Phase, Request, Time,
};
use scupper_pre_flight::Finding;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::reporter::holds::HoldReporter;
use crate::reporter::status_publisher::StatusPublisher;
use crate::reporter::writer::{ApiWriter, QueuedWrite};
use scupper_cluster::{Cluster, KubernetesEvent, Series, Severity};
use scupper_common::clock::Clock;
use scupper_common::event_throttle::{EventThrottle, Repeated};
use scupper_common::health::Health;
use scupper_metrics::{DrainMeter, Metrics};
use scupper_report::{
    BlockedCondition, DrainOutput, Format, NodeEvent, PodEvents, PolicyMessage, ProgressBoard,
    conditions_for, conditions_of_refused, conditions_of_uncordoned, event_for, finding_events, forced_event,
};
use scupper_traces::{DrainTrace, Traces};
use scupper_triggers::DrainReportSender;

/// How long the end of a drain waits for its last writes, which then continue in the background.
const FAREWELL: Duration = Duration::from_secs(5);
/// The same in a process that ends, while the API server does not answer.
const LAST_FAREWELL: Duration = Duration::from_secs(60);
/// Attempts of a refused write: two and a half minutes, a little longer than a drain's own writes are retried by default
/// (`drain.forbidden-timeout`).
const REFUSALS: u32 = 20;
/// The same while a user waits in a terminal: about four seconds, which [`FAREWELL`] allows.
const FEW_REFUSALS: u32 = 5;

/// How often to check what every pod waits for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often to refresh the live display, at least.
const DISPLAY_INTERVAL: Duration = Duration::from_millis(250);

/// Where the lines of every drain go.
pub type Output = Arc<dyn Fn() -> Box<dyn Write + Send> + Send + Sync>;

/// Reports one drain.
pub struct Reporter {
    sink: DrainOutput,
    started: Time,
    writes: Option<mpsc::UnboundedSender<QueuedWrite>>,
    /// Events have a queue of their own, so that they never delay conditions.
    events: Option<mpsc::UnboundedSender<QueuedWrite>>,
    writers: Vec<JoinHandle<()>>,
    metrics: Option<Metrics>,
    meter: Option<DrainMeter>,
    trace: Option<DrainTrace>,
    board: Option<ProgressBoard>,
    holds: Option<HoldReporter>,
    publisher: StatusPublisher,
    stuck: PodEvents,
    blocked: BlockedCondition,
    /// Events about the node, by reason and text.
    node_events: EventThrottle<(String, String), NodeEvent>,
    /// The node's condition already says that it is being drained.
    in_progress: bool,
    /// The drain has left its first phase, in which nothing is changed.
    has_begun: bool,
    /// This drain had drained the node before, and has evicted no pod since.
    was_drained: bool,
    /// The node took pods while its condition said that it is drained: what an uncordon that fails must write, because the
    /// node may be cordoned again by then.
    lifted: Option<Vec<NodeCondition>>,
    /// A status is being written; the next one waits.
    publishing: Arc<AtomicBool>,
    /// The API server does not answer writes of the node.
    api_unavailable: Arc<AtomicBool>,
    /// The drain has ended.
    has_ended: Arc<AtomicBool>,
    /// The process ends with the drain; what is unwritten then is lost.
    is_last: bool,
    looked: Time,
}

impl Reporter {
    /// Prints lines only.
    pub fn lines(format: Format, output: &Output, now: Time, started: Time, request: &Request) -> Self {
        Self {
            sink: DrainOutput::begin(format, now, request, output()),
            started,
            writes: None,
            events: None,
            writers: Vec::new(),
            metrics: None,
            meter: None,
            trace: None,
            board: None,
            holds: None,
            publisher: StatusPublisher::new(now, request.id.clone()),
            stuck: PodEvents::default(),
            blocked: BlockedCondition::default(),
            node_events: EventThrottle::default(),
            in_progress: false,
            has_begun: false,
            was_drained: false,
            lifted: None,
            publishing: Arc::default(),
            api_unavailable: Arc::default(),
            has_ended: Arc::default(),
            is_last: false,
            looked: Time::default(),
        }
    }

    /// Continues a drain of another process.
    pub fn resuming(mut self, left: Option<&Checkpoint>) -> Self {
        self.was_drained = left.is_some_and(|left| left.ended_well);
        self.has_begun = left.is_some();
        self.after(left)
    }

    /// At its end it says what becomes of the cordon that another process has made.
    pub fn after(mut self, left: Option<&Checkpoint>) -> Self {
        if let Some(left) = left {
            self.sink.resume(left);
        }
        self
    }

    /// Also counts it in metrics.
    pub fn and_metrics(mut self, metrics: &Metrics, request: &Request) -> Self {
        self.metrics = Some(metrics.clone());
        self.meter = Some(DrainMeter::begin(metrics, request, self.started));
        self
    }

    /// Also reports to its trigger which policies hold it, and what it did.
    pub fn and_reports(mut self, reports: DrainReportSender) -> Self {
        self.holds = Some(HoldReporter::new(reports));
        self
    }

    /// Also exports it as a trace, if there is a collector. `left`: the checkpoint of a former process.
    pub fn and_traces(
        mut self,
        traces: Option<&Traces>,
        clock: Clock,
        request: &Request,
        left: Option<&Checkpoint>,
    ) -> Self {
        let number = trace::number(&request.id);
        let when = (clock, self.started);
        self.trace = traces.map(|traces| DrainTrace::begin(traces, number, request, when, left));
        self
    }

    /// Also shows it in the live display.
    pub fn and_board(mut self, board: Option<ProgressBoard>, now: Time, request: &Request) -> Self {
        if let Some(board) = &board {
            board.begin(&request.node, now, "beginning");
        }
        self.board = board;
        self
    }

    /// How often the loop should turn even if nothing happens.
    pub(crate) const fn beat(&self) -> Duration {
        match &self.board {
            Some(_) => DISPLAY_INTERVAL,
            None => Health::BEAT,
        }
    }

    /// Also publishes the plan and the waves, for a command that follows the drain.
    pub fn and_follower(mut self, followed: bool) -> Self {
        if followed {
            self.publisher = self.publisher.and_follower();
        }
        self
    }

    /// The process ends with the drain. Call it before [`Self::and_cluster`].
    pub const fn and_last(mut self) -> Self {
        self.is_last = true;
        self
    }

    /// Also writes conditions, Events and the status.
    pub fn and_cluster(mut self, cluster: Cluster, request: &Request) -> Self {
        let writer = ApiWriter {
            cluster,
            node: request.node.clone(),
            drain: request.id.clone(),
            began: self.started,
            refusals: if self.is_last { FEW_REFUSALS } else { REFUSALS },
            api_unavailable: Arc::clone(&self.api_unavailable),
            has_ended: Arc::clone(&self.has_ended),
            publishing: Arc::clone(&self.publishing),
        };
        let (states, entries) = mpsc::unbounded_channel();
        self.writes = Some(states);
        let writing = writer.clone().states(entries);
        self.writers
            .push(tokio::spawn(writing.instrument(trace::span(request))));
        let (events, entries) = mpsc::unbounded_channel();
        self.events = Some(events);
        let writing = writer.events(entries);
        self.writers
            .push(tokio::spawn(writing.instrument(trace::span(request))));
        self
    }

    /// When the drain began, which may have been in another process.
    pub const fn started(&self) -> Time {
        self.started
    }

    /// The engine gave a command.
    pub(crate) fn on_command(&mut self, now: Time, command: &Command) {
        if let Some(trace) = &mut self.trace {
            trace.asked(now, command);
        }
    }

    /// An event for the engine: names of pods, and answers.
    pub(crate) fn on_event(&mut self, now: Time, event: &Event) {
        if let Some(trace) = &mut self.trace {
            trace.observe(now, event);
        }
        self.publisher.observe(event);
        if let Event::Node(Some(node)) = event {
            self.in_progress |= is_in_progress(node);
            self.lifted = conditions_of_uncordoned(node).or_else(|| self.lifted.take());
            self.blocked.observe(node);
            self.sink.node(now, node);
        }
        match event {
            Event::Pods(pods) | Event::Answer(_, Answer::Pods(pods)) => self.sink.know(pods),
            Event::PodApplied(pod) => self.sink.know([pod]),
            _ => {}
        }
    }

    /// What pre-flight arithmetic has found.
    pub(crate) fn on_findings(&mut self, now: Time, request: &Request, findings: &[Finding]) {
        self.sink.findings(now, findings);
        if let Some(meter) = &self.meter {
            meter.findings(findings);
        }
        self.tell(now, request, finding_events(request, findings));
    }

    /// Messages of policies about the node.
    pub(crate) fn on_policy_messages(&mut self, now: Time, words: &[PolicyMessage]) {
        for words in words {
            self.sink.policy_message(now, words);
        }
    }

    /// Reports one notice.
    pub fn on_notice(&mut self, now: Time, request: &Request, notice: &Notice) {
        self.sink.notice(now, notice);
        if matches!(notice, Notice::Finished { .. }) {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        tracing::debug!(drain = request.name, ?notice, "notice");
        if let Some(meter) = &mut self.meter {
            meter.notice(now, notice);
        }
        if let Some(trace) = &mut self.trace {
            trace.notice(now, notice);
        }
        if let Some(board) = &self.board {
            board.notice(&request.node, now, notice);
        }
        if let Some(holds) = &mut self.holds {
            holds.notice(&request.id, notice);
        }
        self.publisher.notice(now, notice);
        self.blocked.notice(notice);
        if self.publisher.is_urgent(notice) {
            self.looked = Time::default();
        }
        if let Some(changes) = self.conditions(now, request, notice) {
            self.write(QueuedWrite::Conditions(changes));
        }
        if let Some((pod, event)) = forced_event(request, notice) {
            let repeated = Repeated { times: 1, last: now };
            let event = kubernetes_event(request, event, repeated, EventSeriesKey::PerReason);
            self.write(QueuedWrite::PodEvent(pod, event));
        }
        if let Some(event) = event_for(request, notice) {
            self.tell(now, request, [event]);
        }
    }

    /// Records Events about the node, and writes what is due.
    fn tell(&mut self, now: Time, request: &Request, events: impl IntoIterator<Item = NodeEvent>) {
        for event in events {
            let key = (event.reason.clone(), event.note.clone());
            self.node_events.record(now, key, event);
        }
        self.write_node_events(now, request);
    }

    /// Writes the Events about the node that are due.
    fn write_node_events(&mut self, now: Time, request: &Request) {
        for (_, event, repeated) in self.node_events.due(now) {
            // A drain may end twice with different texts: kubelets try again.
            let event = kubernetes_event(request, event, repeated, EventSeriesKey::PerText);
            self.write(QueuedWrite::Event(event));
        }
    }

    /// The changes of conditions. A resumed drain may have been reported as ended, or not at all.
    fn conditions(&mut self, now: Time, request: &Request, notice: &Notice) -> Option<Vec<NodeCondition>> {
        self.has_begun |= matches!(
            notice,
            Notice::Phase(Phase::Preparing | Phase::Cordoning | Phase::Holding)
        );
        let begins = match notice {
            Notice::Finished {
                outcome: Outcome::PolicyFailed { .. },
                ..
            } if !self.has_begun && request.intent == Intent::Drain => {
                return conditions_for(request, notice).map(conditions_of_refused);
            }
            Notice::WaveStarted { .. } if self.was_drained => {
                self.was_drained = false;
                true
            }
            Notice::Cordoned { .. } | Notice::Phase(Phase::Holding) if self.was_drained => return None,
            Notice::Cordoned { .. } => true,
            Notice::Phase(Phase::Holding) => !self.in_progress,
            Notice::Finished { .. } if request.intent == Intent::Uncordon => {
                return conditions_for(request, notice).or_else(|| self.lifted.take());
            }
            _ => return conditions_for(request, notice),
        };
        self.in_progress = true;
        begins.then(|| self.blocked.started(now, request))
    }

    fn write(&self, entry: QueuedWrite) {
        let writes = match entry {
            QueuedWrite::Event(_) | QueuedWrite::PodEvent(..) | QueuedWrite::BudgetEvent(..) => &self.events,
            QueuedWrite::Conditions(_) | QueuedWrite::Status(_) => &self.writes,
        };
        if let Some(writes) = writes {
            // The writer ends only with this sender.
            writes.send(entry).unwrap_or_default();
        }
    }

    /// The loop has turned: checks once a second what every pod waits for.
    pub(crate) fn on_turn(&mut self, now: Time, drain: &Drain) {
        if let Some(board) = &self.board {
            board.turned(now, drain, || self.publisher.estimate(now));
        }
        if now.since(self.looked) < LOOK_EVERY {
            return;
        }
        self.looked = now;
        self.sink.turn(now);
        let waiting = drain.waiting();
        if let Some(meter) = &mut self.meter {
            meter.stands(drain.request().deadline, &waiting);
            meter.estimates(self.publisher.estimate(now).map(|estimate| estimate.0));
        }
        let request = drain.request();
        self.write_node_events(now, request);
        for (pod, event, repeated) in self.stuck.due(now, request, &waiting) {
            let event = kubernetes_event(request, event, repeated, EventSeriesKey::PerReason);
            self.write(QueuedWrite::PodEvent(pod, event));
        }
        for (budget, pod, event, repeated) in self.stuck.due_of_budgets(now, request, &waiting) {
            let event = kubernetes_event(request, event, repeated, EventSeriesKey::PerReason);
            self.write(QueuedWrite::BudgetEvent(budget, pod, event));
        }
        if let Some(changes) = self.blocked.due(now, request, drain.phase(), &waiting) {
            self.write(QueuedWrite::Conditions(changes));
        }
        if self.publishing.load(Ordering::Relaxed) {
            return;
        }
        if let Some(text) = self.publisher.due(now, drain, waiting) {
            self.publishing.store(true, Ordering::Relaxed);
            self.write(QueuedWrite::Status(Some(text)));
        }
    }

    /// The drain has ended: waits a little for the last writes.
    pub(crate) async fn end(&mut self, now: Time, drain: &Drain) {
        if let Some(last) = self.publisher.last(now, drain) {
            self.write(QueuedWrite::Status(last));
        }
        (self.writes, self.events) = (None, None);
        let mut written = join_all(std::mem::take(&mut self.writers));
        if tokio::time::timeout(FAREWELL, &mut written).await.is_ok() {
            return;
        }
        if !self.is_last {
            tracing::warn!(
                "the last conditions or Events of the drain are not written yet; retrying in the background"
            );
            return;
        }
        let longer = LAST_FAREWELL.saturating_sub(FAREWELL);
        let api_unavailable = self.api_unavailable.load(Ordering::Relaxed);
        if !api_unavailable || tokio::time::timeout(longer, written).await.is_err() {
            tracing::warn!("the last conditions or Events of the drain could not be written in time");
        }
    }
}

fn is_in_progress(node: &Node) -> bool {
    let says = |it: &scupper_engine::Condition| it.kind == "DrainInProgress" && it.status == "True";
    node.conditions.iter().any(says)
}

/// When two Events of a drain, about the same object and with the same reason, belong to one series.
#[derive(Clone, Copy)]
pub enum EventSeriesKey {
    /// If their texts are the same.
    PerText,
    /// Always: the numbers in their texts change.
    PerReason,
}

/// An Event about the node, as part of the series of those like it.
pub fn kubernetes_event(
    request: &Request,
    event: NodeEvent,
    repeated: Repeated,
    same: EventSeriesKey,
) -> KubernetesEvent {
    let key = match same {
        EventSeriesKey::PerText => format!("{}: {}", request.id, event.note),
        EventSeriesKey::PerReason => request.id.clone(),
    };
    KubernetesEvent {
        node: request.node.clone(),
        severity: Severity::of(event.warning),
        reason: event.reason,
        action: "Drain".to_owned(),
        note: event.note,
        series: Some(Series {
            key,
            times: repeated.times,
            last: repeated.last,
        }),
    }
}

#[cfg(test)]
mod tests;
