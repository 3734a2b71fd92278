//! One drain's notices, fanned out: standard output, the log, node conditions and Events. It blocks nothing: what is
//! to be written to the API server is written behind the drain, in order.

use std::io::Write;
use std::sync::Arc;

use scupper_engine::{Answer, Drain, Event, Notice, Request, Time};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, KubernetesEvent, NodeCondition, Severity};
use crate::report::{
    ConditionChange, DrainMeter, Format, Metrics, NodeEvent, Sink, conditions_for, event_for,
};

/// How long the last conditions may take once the drain is over.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(5);
/// How often one write is tried.
const TRIES: usize = 3;

/// How often it is counted what every pod waits for.
const COUNTED_EVERY: scupper_engine::Duration = scupper_engine::Duration::from_secs(1);

/// Where the lines of every drain go.
pub type Output = Arc<dyn Fn() -> Box<dyn Write + Send> + Send + Sync>;

/// Tells one drain.
pub(crate) struct Reporter {
    sink: Sink,
    started: Time,
    writes: Option<mpsc::UnboundedSender<Entry>>,
    writer: Option<JoinHandle<()>>,
    meter: Option<DrainMeter>,
    counted: Time,
}

enum Entry {
    Conditions(Vec<ConditionChange>),
    Event(NodeEvent),
}

impl Reporter {
    /// Tells people only.
    pub(crate) fn lines(
        format: Format,
        output: &Output,
        now: Time,
        started: Time,
        request: &Request,
    ) -> Self {
        Self {
            sink: Sink::begin(format, now, request, output()),
            started,
            writes: None,
            writer: None,
            meter: None,
            counted: Time::default(),
        }
    }

    /// Counts it, too.
    pub(crate) fn and_metrics(mut self, metrics: &Metrics, request: &Request) -> Self {
        self.meter = Some(DrainMeter::begin(metrics, request, self.started));
        self
    }

    /// Writes conditions and Events, too.
    pub(crate) fn and_cluster(mut self, cluster: Cluster, node: String) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.writes = Some(sender);
        self.writer = Some(tokio::spawn(write_all(cluster, node, receiver)));
        self
    }

    /// When the drain began, which may have been in another process.
    pub(crate) const fn started(&self) -> Time {
        self.started
    }

    /// Learns the names of pods.
    pub(crate) fn heard(&mut self, event: &Event) {
        match event {
            Event::Pods(pods) | Event::Answer(_, Answer::Pods(pods)) => self.sink.know(pods),
            Event::PodApplied(pod) => self.sink.know([pod]),
            _ => {}
        }
    }

    /// Tells one notice.
    pub(crate) fn notice(&mut self, now: Time, request: &Request, notice: &Notice) {
        self.sink.notice(now, notice);
        tracing::debug!(drain = request.name, ?notice, "notice");
        if let Some(meter) = &mut self.meter {
            meter.notice(now, notice);
        }
        let Some(writes) = &self.writes else { return };
        let conditions = conditions_for(request, notice).map(Entry::Conditions);
        let event = event_for(request, notice).map(Entry::Event);
        for write in conditions.into_iter().chain(event) {
            // The writer ends only with this sender.
            writes.send(write).unwrap_or_default();
        }
    }

    /// The loop has turned: what every pod waits for is looked at again, now and then.
    pub(crate) fn turned(&mut self, now: Time, drain: &Drain) {
        if now.since(self.counted) < COUNTED_EVERY {
            return;
        }
        self.counted = now;
        if let Some(meter) = &self.meter {
            meter.stands(drain.request().deadline, &drain.waiting());
        }
    }

    /// The drain is over: what is still to be written gets a little time.
    pub(crate) async fn end(&mut self) {
        self.writes = None;
        if let Some(writer) = self.writer.take()
            && tokio::time::timeout(FAREWELL, writer).await.is_err()
        {
            tracing::warn!("the last conditions of the drain could not be written in time");
        }
    }
}

async fn write_all(cluster: Cluster, node: String, mut writes: mpsc::UnboundedReceiver<Entry>) {
    while let Some(write) = writes.recv().await {
        write_one(&cluster, &node, &write).await;
    }
}

async fn write_one(cluster: &Cluster, node: &str, write: &Entry) {
    for attempt in 1..=TRIES {
        let written = match write {
            Entry::Conditions(changes) => {
                let conditions: Vec<_> = changes.iter().map(condition).collect();
                cluster.set_node_conditions(node, &conditions).await
            }
            Entry::Event(event) => cluster.emit(&kubernetes_event(node, event)).await,
        };
        match written {
            Ok(_) => return,
            Err(error) if attempt == TRIES => tracing::warn!(node, %error, "could not tell the API server"),
            Err(error) => tracing::debug!(node, %error, attempt, "could not tell the API server yet"),
        }
    }
}

fn condition(change: &ConditionChange) -> NodeCondition {
    NodeCondition {
        kind: change.kind.to_owned(),
        status: change.status.to_owned(),
        reason: change.reason.clone(),
        message: change.message.clone(),
    }
}

fn kubernetes_event(node: &str, event: &NodeEvent) -> KubernetesEvent {
    KubernetesEvent {
        node: node.to_owned(),
        node_uid: None,
        severity: if event.warning {
            Severity::Warning
        } else {
            Severity::Normal
        },
        reason: event.reason.clone(),
        action: "Drain".to_owned(),
        note: event.note.clone(),
    }
}
