//! Writes a drain's conditions, status and Events to the API server in the background, in two queues. It retries a
//! condition or the status, even after the drain has ended, until the write succeeds, a newer value replaces it, or the
//! API server refuses it too often. It retries an Event until the write succeeds, the API server refuses it too often, or
//! does not answer for 10 minutes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scupper_api::NodeCondition;
use scupper_engine::{PodRef, Time};
use tokio::sync::mpsc::{UnboundedReceiver, error::TryRecvError};
use tokio::time::sleep;

use crate::reporter::write_retry::{WriteRetry, WriteRetryLimits};
use scupper_cluster::{Cluster, KubernetesEvent, WriteError};
use scupper_report::STATUS_ANNOTATION;

/// When to give an Event up. Later Events wait for it.
const EVENT_LIMITS: WriteRetryLimits = WriteRetryLimits {
    refusals: 3,
    unanswered_for: Some(Duration::from_secs(600)),
};

/// Something to be written.
pub(crate) enum QueuedWrite {
    Conditions(Vec<NodeCondition>),
    Event(KubernetesEvent),
    PodEvent(PodRef, KubernetesEvent),
    /// About a budget of this name, which blocks the pod.
    BudgetEvent(String, PodRef, KubernetesEvent),
    /// The status; `None`: remove it.
    Status(Option<String>),
}

/// Writes for one drain.
#[derive(Clone)]
pub(crate) struct ApiWriter {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
    /// The drain's id.
    pub(crate) drain: String,
    /// When it began.
    pub(crate) began: Time,
    /// After so many refusals a condition or the status is given up.
    pub(crate) refusals: u32,
    /// The last try of a state was not answered.
    pub(crate) api_unavailable: Arc<AtomicBool>,
    /// A view is on its way.
    pub(crate) publishing: Arc<AtomicBool>,
    /// The drain has ended; otherwise another engine of it goes on once this one is gone.
    pub(crate) has_ended: Arc<AtomicBool>,
}

/// The newest state that is not written.
#[derive(Default)]
struct UnwrittenState {
    conditions: Option<Vec<NodeCondition>>,
    status: Option<Option<String>>,
}

impl UnwrittenState {
    fn take(&mut self, entry: QueuedWrite) {
        match entry {
            QueuedWrite::Conditions(changes) => {
                let is_newer = |known: &NodeCondition| changes.iter().any(|it| it.kind == known.kind);
                let mut conditions = self.conditions.take().unwrap_or_default();
                conditions.retain(|known| !is_newer(known));
                conditions.extend(changes);
                self.conditions = Some(conditions);
            }
            QueuedWrite::Status(status) => self.status = Some(status),
            QueuedWrite::Event(_) | QueuedWrite::PodEvent(..) | QueuedWrite::BudgetEvent(..) => {}
        }
    }

    /// The part that `write` tries first.
    const fn first(&self) -> &'static str {
        if self.conditions.is_some() {
            "conditions"
        } else {
            "status"
        }
    }

    const fn is_nothing(&self) -> bool {
        self.conditions.is_none() && self.status.is_none()
    }

    /// Drops the part that `write` tries first. True if that was the status.
    fn drop_first(&mut self) -> bool {
        self.conditions.take().is_none() && self.status.take().is_some()
    }
}

impl ApiWriter {
    /// Writes Events, one after another, until the channel is closed.
    pub(crate) async fn events(self, mut entries: UnboundedReceiver<QueuedWrite>) {
        while let Some(entry) = entries.recv().await {
            let mut retry = WriteRetry::new(EVENT_LIMITS);
            while let Err(error) = self.emit(&entry).await {
                let Some(pause) = retry.failed(&error) else {
                    tracing::warn!(node = self.node, %error, "an Event about the drain could not be written");
                    break;
                };
                tracing::debug!(node = self.node, %error, "an Event about the drain could not be written yet");
                sleep(pause).await;
            }
        }
    }

    /// Writes conditions and status until the channel is closed and the last state is written or superseded.
    pub(crate) async fn states(self, mut entries: UnboundedReceiver<QueuedWrite>) {
        let mut unwritten = UnwrittenState::default();
        let mut retry = self.retry();
        let mut open = true;
        loop {
            if unwritten.is_nothing() {
                match entries.recv().await {
                    Some(entry) => unwritten.take(entry),
                    None => return,
                }
            }
            // The first try is of each state in turn, so that watchers see it; after a failure only the newest counts.
            while open && retry.has_failed() {
                match entries.try_recv() {
                    Ok(entry) => unwritten.take(entry),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => open = false,
                }
            }
            if retry.has_failed() && !open && (self.is_continued_elsewhere() || self.is_superseded().await) {
                return;
            }
            let written = self.write(&unwritten).await;
            let temporary = written.as_ref().is_err_and(WriteError::is_temporary);
            self.api_unavailable.store(temporary, Ordering::Relaxed);
            let Err(error) = written else {
                self.done(&mut unwritten);
                retry = self.retry();
                continue;
            };
            let Some(pause) = retry.failed(&error) else {
                tracing::warn!(node = self.node, %error, "the drain's {} could not be written", unwritten.first());
                self.done(&mut unwritten);
                retry = self.retry();
                continue;
            };
            tracing::debug!(node = self.node, %error, "the drain's {} could not be written yet", unwritten.first());
            tokio::select! {
                () = sleep(pause) => {}
                entry = entries.recv(), if open => match entry {
                    Some(entry) => unwritten.take(entry),
                    None => open = false,
                },
            }
        }
    }

    fn retry(&self) -> WriteRetry {
        WriteRetry::new(WriteRetryLimits {
            refusals: self.refusals,
            unanswered_for: None,
        })
    }

    fn done(&self, unwritten: &mut UnwrittenState) {
        if unwritten.drop_first() {
            self.publishing.store(false, Ordering::Relaxed);
        }
    }

    async fn emit(&self, entry: &QueuedWrite) -> Result<(), WriteError> {
        match entry {
            QueuedWrite::Event(event) => self.cluster.emit(event).await,
            QueuedWrite::PodEvent(pod, event) => self.cluster.emit_about_pod(event, pod).await,
            QueuedWrite::BudgetEvent(budget, pod, event) => {
                self.cluster.emit_about_budget(event, budget, pod).await
            }
            QueuedWrite::Conditions(_) | QueuedWrite::Status(_) => Ok(()),
        }
    }

    /// Conditions first: others rely on them.
    async fn write(&self, unwritten: &UnwrittenState) -> Result<(), WriteError> {
        let Self { cluster, node, .. } = self;
        match (&unwritten.conditions, &unwritten.status) {
            // All of them in one write, because they are a pair.
            (Some(changes), _) => cluster.set_node_conditions(node, changes).await,
            (None, Some(Some(text))) => cluster.set_node_annotation(node, STATUS_ANNOTATION, text).await,
            (None, Some(None)) => cluster.remove_node_annotation(node, STATUS_ANNOTATION).await,
            (None, None) => Ok(()),
        }
    }

    /// The engine was dropped before its drain ended, because it lost the Lease. The process that holds the Lease continues
    /// the drain, and what it writes is newer.
    fn is_continued_elsewhere(&self) -> bool {
        !self.has_ended.load(Ordering::Relaxed)
    }

    /// A newer drain of the node has begun, or the node was deleted.
    async fn is_superseded(&self) -> bool {
        match self.cluster.node(&self.node).await {
            Ok(Some(node)) => {
                let mark = node.checkpoint;
                mark.is_some_and(|mark| {
                    mark.id != self.drain && (mark.is_under_way() || mark.started > self.began)
                })
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use scupper_cluster::ConnectOptions;
    use scupper_common::clock::Clock;
    use tokio::sync::mpsc;

    use super::*;

    fn condition(status: &'static str) -> NodeCondition {
        NodeCondition {
            kind: "DrainInProgress",
            status,
            reason: "R".to_owned(),
            message: "m".to_owned(),
        }
    }

    fn writer(cluster: &Cluster, has_ended: bool) -> ApiWriter {
        ApiWriter {
            cluster: cluster.clone(),
            node: "worker-1".to_owned(),
            drain: "d".to_owned(),
            began: Time::default(),
            refusals: super::super::REFUSALS,
            api_unavailable: Arc::default(),
            publishing: Arc::default(),
            has_ended: Arc::new(AtomicBool::new(has_ended)),
        }
    }

    /// An API server that answers with this code until it is up. `said`: what was last written.
    fn api_server(code: u16, is_up: &Arc<AtomicBool>, said: &Arc<Mutex<String>>) -> Cluster {
        let (up, stored) = (Arc::clone(is_up), Arc::clone(said));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (up, stored) = (Arc::clone(&up), Arc::clone(&stored));
            async move {
                let is_patch = request.method() == http::Method::PATCH;
                let body = http_body_util::BodyExt::collect(request.into_body())
                    .await
                    .unwrap()
                    .to_bytes();
                let node = br#"{"metadata": {"name": "worker-1", "uid": "u", "resourceVersion": "7"}, "status": {}}"#;
                let code = if up.load(Ordering::Relaxed) { 200 } else { code };
                if is_patch && code == 200 {
                    *stored.lock().unwrap() = String::from_utf8_lossy(&body).into_owned();
                }
                let body = kube::client::Body::from(node.to_vec());
                Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
            }
        });
        let clock = Clock::starting_at(Time::from_millis(1_000_000_000));
        Cluster::from_client(
            kube::Client::new(service, "default"),
            ConnectOptions::default(),
            clock,
        )
    }

    /// Whoever waits for the condition waits for the end of the drain.
    #[tokio::test(start_paused = true)]
    async fn the_last_state_outlasts_two_minutes_of_refusals() {
        let (is_up, said) = (Arc::default(), Arc::default());
        let cluster = api_server(403, &is_up, &said);
        let (states, entries) = mpsc::unbounded_channel();
        states
            .send(QueuedWrite::Conditions(vec![condition("False")]))
            .unwrap();
        drop(states);
        let writing = tokio::spawn(writer(&cluster, true).states(entries));
        sleep(Duration::from_secs(120)).await;
        is_up.store(true, Ordering::Relaxed);
        writing.await.unwrap();
        let said = said.lock().unwrap();
        assert!(said.contains("\"False\""), "{said:?}");
    }

    /// The engine was dropped with its Lease while the API server did not answer. The next engine of the same drain ends it.
    #[tokio::test(start_paused = true)]
    async fn what_an_engine_without_its_lease_had_to_say_does_not_replace_the_end() {
        let (is_up, said) = (Arc::default(), Arc::default());
        let cluster = api_server(503, &is_up, &said);
        let (old, entries) = mpsc::unbounded_channel();
        let old_writer = tokio::spawn(writer(&cluster, false).states(entries));
        old.send(QueuedWrite::Conditions(vec![condition("True")]))
            .unwrap();
        sleep(Duration::from_secs(25)).await;
        drop(old);
        sleep(Duration::from_secs(3)).await;
        is_up.store(true, Ordering::Relaxed);
        let (new, entries) = mpsc::unbounded_channel();
        new.send(QueuedWrite::Conditions(vec![condition("False")]))
            .unwrap();
        drop(new);
        writer(&cluster, true).states(entries).await;
        assert!(
            said.lock().unwrap().contains("\"False\""),
            "{:?}",
            said.lock().unwrap()
        );
        old_writer.await.unwrap();
        assert!(
            said.lock().unwrap().contains("\"False\""),
            "{:?}",
            said.lock().unwrap()
        );
    }
}
