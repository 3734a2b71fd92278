//! Specialized Lifecycle Management: the driver as a kubelet plugin.
//!
//! ```text
//!  kubelet ──► sockets: registration, service ──► call ─┐                      ┌─► DrainCommand  (to the driver)
//!  API     ──► streams: events, transitions ────────────┼─► SlmState (decides) ┼─► Reply         (to the kubelet)
//!  driver  ──► DriverChanges ───────────────────────────┘                      └─► TransitionApi (transitions, Events)
//! ```
//!
//! `monotonic_deadlines`, `call`, `deadline`, `state`, `rotation`, `shutdown` and `transition_sync` decide and do no
//! I/O; `sockets`, `endpoint(s)`, `service`, `registration` and `transition_publisher` do I/O and decide nothing;
//! `event_loop` receives all inputs, and `run` connects the parts. `self_claim` does the kubelet's part for kubelets
//! without SLM. The module must not know how the API server is reached, nor how a drain works.

mod ask_kubelet;
mod authority;
mod call;
mod deadline;
mod endpoint;
mod endpoints;
mod error;
#[cfg(test)]
mod error_texts;
mod event_loop;
mod lifecycle;
mod monotonic_deadlines;
mod options;
mod registration;
mod rotation;
mod run;
mod self_claim;
mod service;
mod shutdown;
mod sockets;
mod state;
mod transition_api;
mod transition_publisher;
mod transition_sync;

pub use ask_kubelet::ask_kubelet;
pub use call::OUTCOME_PREFIXES;
pub use error::SlmError;
pub use lifecycle::{EventFlags, LifecycleChange, LifecycleEvent, TransitionChange, VersionedEvent};
pub use options::{OptionsError, SlmOptions, TransitionScope, unique_instance};
pub use registration::Registration;
pub use run::{FindResumePoint, SLM_TRIGGER, SlmDeps, start};
pub use scupper_contract::{GROUP as API_GROUP, PLUGIN_VERSION, VERSION as API_VERSION};
pub use self_claim::{
    ClaimApi, ClaimError, Claimant, EventSnapshot, EventUpdate, TransitionCondition, has_finalizer,
};
pub use transition_api::{TransitionApi, TransitionApiError};
