//! The connection to the API server.

use std::path::PathBuf;
use std::time::Duration;

use futures::Stream;
use futures::stream::{self, BoxStream, StreamExt as _};
use scupper_engine::{Answer, Event, Node, PodRef, Task};
use thiserror::Error;

use super::{
    KubernetesEvent, LifecycleChange, LifecycleEvent, LifecycleTransition, NodeCondition, Published,
    ReadError, TransitionChange, WriteError,
};

/// How to reach the API server.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The kubeconfig file; `None`: `KUBECONFIG`, `~/.kube/config` or the pod's own service account.
    pub kubeconfig: Option<PathBuf>,
    /// The limit of one eviction request.
    pub eviction_timeout: Duration,
    /// The limit of every other request.
    pub request_timeout: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            eviction_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// Nothing to read it from.
    #[error("no cluster configuration found; tried {tried}; name one with --kubeconfig")]
    NoConfig {
        /// Everything that was tried, and why it did not do.
        tried: String,
    },
}

/// The API server. Clones share one connection.
#[derive(Clone)]
#[expect(dead_code, reason = "the calls that use them follow in the next commit")]
pub struct Cluster {
    client: kube::Client,
    options: ConnectOptions,
}

impl Cluster {
    /// Reads the configuration and asks the server for its version, so that a wrong address shows at once.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let tried = format!("{:?}", options.kubeconfig);
        Err(ConnectError::NoConfig { tried })
    }

    /// Over a client that is there already.
    pub fn from_client(client: kube::Client, options: ConnectOptions) -> Self {
        Self { client, options }
    }

    /// The same with the lifecycle objects in another API group, for clusters where the CRDs are not served.
    #[must_use]
    pub fn with_lifecycle_group(self, _group: &str) -> Self {
        self
    }

    /// The node, or `None` when there is none of that name.
    pub async fn node(&self, name: &str) -> Result<Option<Node>, ReadError> {
        Err(unread(name))
    }

    /// Whether the node is there and its pods may be read: tells an unknown node, a missing right and a dead server apart.
    pub async fn preflight(&self, node: &str) -> Result<(), ReadError> {
        Err(unread(node))
    }

    /// What happens to the node, its pods and the budgets, beginning with one full list of each. Never ends; breaks
    /// are healed with back-off and show as a fresh full list.
    pub fn watch(&self, _node: &str) -> impl Stream<Item = Event> + Send + use<> {
        stream::pending::<Event>()
    }

    /// Carries out a task for the node. `Plan` and `Step` are other edges' business and answered `Unavailable`.
    pub async fn perform(&self, _node: &str, task: &Task) -> Answer {
        Answer::Unavailable {
            message: format!("{} is not served", task.name()),
        }
    }

    /// Sets an annotation of the node.
    pub async fn set_node_annotation(&self, node: &str, _key: &str, _value: &str) -> Result<(), WriteError> {
        Err(unwritten(node))
    }

    /// Removes an annotation of the node.
    pub async fn remove_node_annotation(&self, node: &str, _key: &str) -> Result<(), WriteError> {
        Err(unwritten(node))
    }

    /// Sets an annotation of a pod, if it still is the one with this UID.
    pub async fn set_pod_annotation(&self, pod: &PodRef, _key: &str, _value: &str) -> Result<(), WriteError> {
        Err(unwritten(&pod.name))
    }

    /// Removes an annotation of a pod, if it still is the one with this UID.
    pub async fn remove_pod_annotation(&self, pod: &PodRef, _key: &str) -> Result<(), WriteError> {
        Err(unwritten(&pod.name))
    }

    /// Sets conditions of the node, all in one write.
    pub async fn set_node_conditions(
        &self,
        node: &str,
        _conditions: &[NodeCondition],
    ) -> Result<(), WriteError> {
        Err(unwritten(node))
    }

    /// Emits a Kubernetes Event about a node.
    pub async fn emit(&self, event: &KubernetesEvent) -> Result<(), WriteError> {
        Err(unwritten(&event.node))
    }

    /// Whether the API server serves LifecycleEvents and LifecycleTransitions.
    pub async fn lifecycle_served(&self) -> Result<bool, ReadError> {
        Err(unread("lifecycle"))
    }

    /// One LifecycleEvent by name.
    pub async fn lifecycle_event(&self, name: &str) -> Result<Option<LifecycleEvent>, ReadError> {
        Err(unread(name))
    }

    /// The LifecycleEvents that are bound to the node.
    pub fn lifecycle_events(&self, _node: &str) -> BoxStream<'static, LifecycleChange> {
        stream::pending().boxed()
    }

    /// The LifecycleTransitions of a driver.
    pub fn lifecycle_transitions(&self, _driver: &str) -> BoxStream<'static, TransitionChange> {
        stream::pending().boxed()
    }

    /// Makes a transition be there as given.
    pub async fn publish_transition(
        &self,
        transition: &LifecycleTransition,
    ) -> Result<Published, WriteError> {
        Err(unwritten(&transition.name))
    }

    /// Removes a transition; it is fine when there is none.
    pub async fn delete_transition(&self, name: &str) -> Result<(), WriteError> {
        Err(unwritten(name))
    }
}

fn unread(what: &str) -> ReadError {
    ReadError::Unavailable {
        what: what.to_owned(),
        message: "not connected".to_owned(),
    }
}

fn unwritten(what: &str) -> WriteError {
    WriteError::Unavailable {
        what: what.to_owned(),
        message: "not connected".to_owned(),
    }
}
