//! The policies' access to the API server, by means of the cluster edge.

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::facts::{FactKind, FactObject, FactQuery, Namespace, Selection};
use scupper_engine::{Answer, Node, Pod, PodRef, Task, Uid};
use tokio::sync::{OnceCell, watch};

use scupper_cluster::{Cluster, KubernetesEvent, ReadError, Severity, WriteError};
use scupper_policy::{AccessError, ClusterAccess, FactError, PolicyEvent};
use scupper_report::{PolicyMessage, policy_event_note};
use scupper_runner::reporter::policy_messages::{POLICY_ACTION, PolicyMessages};
use scupper_triggers::drain_request::ServedRequests;

/// The cluster edge, as policies use it.
pub(crate) struct PolicyClusterAccess {
    cluster: Cluster,
    served: ServedReceiver,
    messages: PolicyMessages,
    cluster_uid: OnceCell<Uid>,
}

/// Reports which DrainRequests the current drain serves.
pub(crate) type ServedReceiver = watch::Receiver<Option<ServedRequests>>;

impl PolicyClusterAccess {
    pub(crate) fn new(cluster: Cluster, served: ServedReceiver, messages: PolicyMessages) -> Self {
        Self {
            cluster,
            served,
            messages,
            cluster_uid: OnceCell::new(),
        }
    }

    /// The DrainRequests that a drain serves.
    fn served_by(&self, drain: &str) -> Result<Vec<FactObject>, FactError> {
        let served = self.served.borrow().clone();
        let served = served.filter(|served| served.drain == drain);
        let gone = || FactError::NotFound("the DrainRequests of this drain are gone".to_owned());
        let requests = served.ok_or_else(gone)?.requests.into_iter();
        Ok(requests.map(FactObject::DrainRequest).collect())
    }
}

impl ClusterAccess for PolicyClusterAccess {
    fn ask<'a>(&'a self, query: &'a FactQuery) -> BoxFuture<'a, Result<Vec<FactObject>, FactError>> {
        async move {
            match &query.selection {
                Selection::OfDrain(drain) => self.served_by(drain),
                _ => self.cluster.ask(query).await.map_err(unread),
            }
        }
        .boxed()
    }

    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        const NAMESPACE: &str = "kube-system";
        async move {
            // It never changes, and a waiting policy asks again and again.
            let place = || (String::new(), NAMESPACE.to_owned());
            let found = || self.cluster.ask_one::<Namespace>(FactKind::Namespace, place());
            let read = async || match found().await {
                Ok(Some(found)) => Ok(Uid::new(found.metadata.uid)),
                Ok(None) => Err(AccessError::NotFound(format!("namespace {NAMESPACE}"))),
                Err(error) => Err(AccessError::Unavailable(error.to_string())),
            };
            self.cluster_uid.get_or_try_init(read).await.cloned()
        }
        .boxed()
    }

    fn node<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        async move {
            let found = self.cluster.node(node).await;
            let found = found.map_err(|error| AccessError::Unavailable(error.to_string()))?;
            found.ok_or_else(|| AccessError::NotFound(format!("node {node}")))
        }
        .boxed()
    }

    fn pods<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        async move {
            match self.cluster.perform(node, &Task::ListPods).await {
                Answer::Pods(pods) => Ok(pods),
                Answer::Unavailable { message } | Answer::Rejected { message } => {
                    Err(AccessError::Unavailable(message))
                }
                other => Err(AccessError::Unavailable(format!(
                    "unexpected answer to a list: {other:?}"
                ))),
            }
        }
        .boxed()
    }

    fn annotate_node<'a>(
        &'a self,
        node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        async move {
            let written = match value {
                Some(value) => self.cluster.set_node_annotation(node, key, value).await,
                None => self.cluster.remove_node_annotation(node, key).await,
            };
            written.map_err(access_error)
        }
        .boxed()
    }

    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        async move {
            let read = self.cluster.secret(namespace, name, key).await;
            read.map_err(|error| match error {
                ReadError::NotFound { what } => AccessError::NotFound(what),
                error => AccessError::Unavailable(error.to_string()),
            })
        }
        .boxed()
    }

    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        async move {
            let written = match value {
                Some(value) => self.cluster.set_pod_annotation(pod, key, value).await,
                None => self.cluster.remove_pod_annotation(pod, key).await,
            };
            written.map_err(access_error)
        }
        .boxed()
    }

    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        async move {
            let severity = Severity::of(event.warning);
            let note = policy_event_note(event.policy, event.note);
            let kubernetes = KubernetesEvent {
                action: POLICY_ACTION.to_owned(),
                ..KubernetesEvent::of_node(event.node, severity, event.reason, note)
            };
            let emitted = match event.pod {
                Some(pod) => self.cluster.emit_about_pod(&kubernetes, pod).await,
                None => self.cluster.emit(&kubernetes).await,
            };
            // The drain reports it even if the API server refuses the Event.
            if event.pod.is_none() {
                let words = PolicyMessage {
                    policy: event.policy.to_owned(),
                    warning: event.warning,
                    reason: event.reason.to_owned(),
                    note: event.note.to_owned(),
                };
                self.messages.add(event.node, words);
            }
            emitted.map_err(access_error)
        }
        .boxed()
    }
}

fn unread(error: ReadError) -> FactError {
    let text = error.to_string();
    match error {
        ReadError::Forbidden { .. } | ReadError::NotSaved { .. } => FactError::Forbidden(text),
        _ => FactError::Unavailable(text),
    }
}

fn access_error(error: WriteError) -> AccessError {
    match error {
        // Another pod has the name now: the one that was meant is gone.
        WriteError::Conflict { what, .. } => AccessError::NotFound(what),
        error if error.is_not_found() => AccessError::NotFound(error.to_string()),
        error => AccessError::Unavailable(error.to_string()),
    }
}
