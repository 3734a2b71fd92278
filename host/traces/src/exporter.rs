//! Transports spans from a drain to the collector: a queue that never blocks, batches, and a few attempts, after which
//! spans are dropped and counted. The start and the end of such a problem are logged once each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::collector::{Collector, SendError, TracesError};
use super::otlp::{ExportRequest, OtlpResource, OtlpScope, OtlpSpan, ResourceSpans, ScopeSpans};
use super::settings::TraceSettings;
use super::span::attribute;

/// Maximum number of queued spans. At some hundred bytes each they take at most a megabyte.
const WAITING: usize = 2048;
/// Maximum number of spans per request.
const BATCH: usize = 512;
/// Maximum time for which a span waits for others. Spans that a killed driver has not sent are lost.
const GATHER: Duration = Duration::from_secs(1);
/// Number of attempts to send a batch; below, the delay before the second one, which then doubles.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_secs(1);
/// Time limit for the last spans when the process ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Accepts the spans of all drains. It exists only if a collector is configured.
#[derive(Clone, Debug)]
pub struct Traces {
    queue: mpsc::Sender<OtlpSpan>,
    counts: Arc<Counts>,
    closing: CancellationToken,
}

/// Counts all spans, and those that were sent or dropped.
#[derive(Debug, Default)]
struct Counts {
    taken: AtomicU64,
    sent: AtomicU64,
    /// Also exported as a metric.
    dropped: Counter,
}

impl Traces {
    /// Accepts spans, and returns the exporter that sends them until some time after [`close`](Self::close). `dropped`
    /// counts those that are lost.
    pub fn new(
        settings: &TraceSettings,
        dropped: Counter,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), TracesError> {
        let counts = Arc::new(Counts {
            dropped,
            ..Counts::default()
        });
        let closing = CancellationToken::new();
        let (queue, waiting) = mpsc::channel(WAITING);
        let exporter = Exporter {
            collector: Collector::new(settings)?,
            endpoint: settings.to_string(),
            hint: settings.hint(),
            resource: resource(settings),
            counts: Arc::clone(&counts),
            closing: closing.clone(),
            trouble: false,
            reported: 0,
        };
        tracing::info!(
            endpoint = exporter.endpoint,
            "drains are sent as traces to a collector"
        );
        let traces = Self {
            queue,
            counts,
            closing,
        };
        Ok((traces, exporter.run(waiting)))
    }

    /// For tests: the caller receives the spans in place of a collector.
    #[cfg(test)]
    pub(super) fn reported(waiting: usize) -> (Self, mpsc::Receiver<OtlpSpan>) {
        let (queue, taken) = mpsc::channel(waiting);
        let traces = Self {
            queue,
            counts: Arc::default(),
            closing: CancellationToken::new(),
        };
        (traces, taken)
    }

    /// Queues a span, or drops it if the queue is full.
    pub(super) fn take(&self, span: OtlpSpan) {
        self.counts.taken.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(span).is_err() {
            self.counts.dropped.inc();
        }
    }

    /// The process is about to end: the exporter sends the queued spans within a short time limit, and ends.
    pub fn close(&self) {
        self.closing.cancel();
    }
}

impl Counts {
    fn unsent(&self) -> u64 {
        let done = self.sent.load(Ordering::Relaxed) + self.dropped.get();
        self.taken.load(Ordering::Relaxed).saturating_sub(done)
    }
}

/// The task that sends spans.
struct Exporter {
    collector: Collector,
    endpoint: String,
    hint: &'static str,
    resource: OtlpResource,
    counts: Arc<Counts>,
    closing: CancellationToken,
    /// The collector does not accept spans, and the log says so.
    trouble: bool,
    /// Number of dropped spans that the log has reported.
    reported: u64,
}

impl Exporter {
    async fn run(self, waiting: mpsc::Receiver<OtlpSpan>) {
        let (closing, counts) = (self.closing.clone(), Arc::clone(&self.counts));
        let sending = self.send(waiting);
        tokio::pin!(sending);
        tokio::select! {
            () = &mut sending => return,
            () = closing.cancelled() => {}
        }
        if timeout(FAREWELL, sending).await.is_err() {
            let left = counts.unsent();
            tracing::warn!(left, "the last spans of drains could not be sent in time");
        }
    }

    async fn send(mut self, mut waiting: mpsc::Receiver<OtlpSpan>) {
        let closing = self.closing.clone();
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                // Spans already in the queue are still received.
                () = closing.cancelled(), if !waiting.is_closed() => waiting.close(),
                taken = waiting.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        break;
                    }
                    gather(&mut waiting, &mut batch, &closing).await;
                    self.deliver(std::mem::take(&mut batch)).await;
                }
            }
        }
        let dropped = self.newly_dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "spans of drains were dropped");
        }
    }

    /// Sends a batch until it arrives or the attempts are used up.
    async fn deliver(&mut self, spans: Vec<OtlpSpan>) {
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        let batch = self.request(spans);
        let mut again = AGAIN;
        for number in 1..=TRIES {
            let last = number == TRIES || self.closing.is_cancelled();
            match self.collector.send(batch.clone()).await {
                Ok(unwanted) => return self.arrived(count, unwanted),
                Err(error) => {
                    self.failed(&error);
                    if last || !error.is_passing() {
                        break;
                    }
                }
            }
            tokio::select! {
                () = sleep(again) => again *= 2,
                () = self.closing.cancelled() => {}
            }
        }
        self.counts.dropped.inc_by(count);
    }

    fn arrived(&mut self, count: u64, unwanted: u64) {
        let unwanted = unwanted.min(count);
        self.counts.sent.fetch_add(count - unwanted, Ordering::Relaxed);
        self.counts.dropped.inc_by(unwanted);
        let dropped = self.newly_dropped();
        let endpoint = &self.endpoint;
        if self.trouble {
            tracing::info!(endpoint, dropped, "the spans of drains reach the collector again");
        } else if dropped > 0 {
            tracing::warn!(endpoint, dropped, "spans of drains were dropped");
        }
        self.trouble = false;
    }

    fn failed(&mut self, error: &SendError) {
        let (endpoint, hint) = (&self.endpoint, self.hint);
        if !std::mem::replace(&mut self.trouble, true) {
            tracing::warn!(
                endpoint,
                "the spans of drains do not reach the collector: {error}{hint}; drains go on, and what waits too long \
                 is dropped"
            );
        }
    }

    /// Number of dropped spans that the log has not reported yet.
    fn newly_dropped(&mut self) -> u64 {
        let dropped = self.counts.dropped.get();
        dropped - std::mem::replace(&mut self.reported, dropped)
    }

    fn request(&self, spans: Vec<OtlpSpan>) -> ExportRequest {
        let scope = OtlpScope {
            name: "scupper".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans,
                }],
            }],
        }
    }
}

/// Waits a short time for more spans.
async fn gather(
    waiting: &mut mpsc::Receiver<OtlpSpan>,
    batch: &mut Vec<OtlpSpan>,
    closing: &CancellationToken,
) {
    let until = Instant::now() + GATHER;
    while let Some(room) = BATCH.checked_sub(batch.len()).filter(|room| *room > 0) {
        tokio::select! {
            taken = waiting.recv_many(batch, room) => {
                if taken == 0 {
                    return;
                }
            }
            () = sleep_until(until) => return,
            () = closing.cancelled() => return,
        }
    }
}

fn resource(settings: &TraceSettings) -> OtlpResource {
    let said = settings.resource.iter();
    OtlpResource {
        attributes: said.map(|(key, value)| attribute(key, value.into())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_finds_no_room_is_dropped_and_counted() {
        let (traces, mut taken) = Traces::reported(2);
        for _ in 0..5 {
            traces.take(OtlpSpan::default());
        }
        assert_eq!(traces.counts.dropped.get(), 3);
        assert_eq!(traces.counts.unsent(), 2);
        assert!(taken.try_recv().is_ok());
    }
}
