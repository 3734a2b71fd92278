//! The cluster edge: the only part of the driver that writes to the API server.
//!
//! It converts API objects to the engine's types, and the engine's tasks to API calls. It must not know why a task is
//! done, nor the other edges: `driver` passes it tasks and reads its streams.
//!
//! ```text
//!  connect (kubeconfig, proxy, stack)
//!     └─────► Cluster ─┬─ read ────────► watch ─► wire types ─► engine::Event      (pod, node, budget, daemonsets)
//!                      ├─ perform ─────► write, evict ─────────► engine::Answer    (checkpoint)
//!                      ├─ room ────────► nodes and pods of all nodes, for where replacements can run
//!                      ├─ volumes ─────► VolumeAttachments of the node, while a drain waits for them
//!                      ├─ conditions, events ──────────────────► for people
//!                      ├─ drain_requests ──────────────────────► DrainRequests watched and answered
//!                      ├─ claims ───────► LifecycleEvents claimed, driven and ended
//!                      └─ transitions ─► LifecycleEvents and -Transitions
//!                                        all over `transport`: one request, one answer, no retry
//! ```
#![deny(missing_docs)]

mod annotations;
mod api_requests;
mod bounded;
mod budget;
mod client;
mod conditions;
mod connect;
mod daemonsets;
mod decode;
mod details;
mod devices;
mod drain_requests;
mod engine_events;
mod error;
#[cfg(test)]
mod error_texts;
mod event_cache;
mod events;
mod evict;
mod facts;
mod groups;
mod http_client;
mod kubeconfig;
mod kubelet;
mod leases;
mod lifecycle_claims;
mod lifecycle_requests;
mod lifecycle_wire;
mod listing;
mod local_volumes;
mod namespace_state;
mod node;
mod optional_reads;
mod out_of_service;
mod owners;
mod pages;
mod peers;
mod pod;
mod pod_specs;
mod proxy;
mod read;
mod recording;
mod renewed_credentials;
mod replicas;
mod rights;
mod rollout;
mod room;
mod secrets;
mod sieve;
mod storage;
mod tasks;
mod transitions;
mod transport;
mod volumes;
mod watch;
mod watch_health;
mod wire;
mod write;

// `kube` builds only where one version of the API is chosen.
use k8s_openapi as _;

pub use api_requests::{ApiRequest, RequestObserver};
pub use client::{Cluster, ConnectOptions};
pub use connect::ConnectError;
pub use decode::{DecodeError, Object, decode};
pub use drain_requests::{DrainRequestObject, DrainRequestResource};
pub use error::{ReadError, WriteError};
pub use events::{KubernetesEvent, Series, Severity};
pub use groups::{LifecycleGroup, OFFICIAL_GROUP, OWN_GROUP};
pub use kubeconfig::Connection;
pub use kubelet::{KUBELET_LEASE_NAMESPACE, KubeletSilence, KubeletState, SeenAt, SignOfLife};
pub use leases::{LEASE_NAMESPACE, Lease};
pub use lifecycle_claims::{LifecycleEventStatus, TRANSITION_CONDITION};
pub use lifecycle_requests::{NewLifecycleEvent, ObservedEvent};
pub use lifecycle_wire::FLAGS_ANNOTATION;
pub use node::CANCEL_ANNOTATION;
pub use optional_reads::OPTIONAL_READ_PATIENCE;
pub use out_of_service::{OUT_OF_SERVICE, OUT_OF_SERVICE_TAINT, OutOfService};
pub use proxy::ProxyUrlError;
pub use recording::Recorder;
pub use rights::{
    ANNOTATE_PURPOSE, CLAIM_PURPOSE, FACT_PURPOSE, FORCE_PURPOSE, LOCAL_DATA_PURPOSE, REQUEST_PURPOSE, Right,
    VOLUME_PURPOSE, evicting_as_node, needed, needed_at_deadline, needed_for_certainty,
    needed_for_drain_requests, needed_for_fact, needed_for_local_data, needed_for_node_is_off,
    needed_for_pod_annotations, needed_for_surge, needed_for_volumes, surge_purpose,
};
pub use room::ClusterRoom;
pub use transitions::Published;
pub use transport::NOT_SAVED;
