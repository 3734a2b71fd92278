//! Specialized Lifecycle Management: the driver as a kubelet plugin.
//!
//! ```text
//!  kubelet ──► sockets: registration, service ──► call ─┐                  ┌─► Demand   (to the driver)
//!  API     ──► streams: events, transitions ────────────┼─► door (decides) ┼─► answer   (to the kubelet)
//!  driver  ──► Standing ────────────────────────────────┘                  └─► Board    (transitions, warnings)
//! ```
//!
//! `anchors`, `claim`, `deadline`, `door`, `rotate`, `stop` and `transitions` decide and do nothing; `sockets`, `endpoint(s)`,
//! `service`, `registration` and `keeper` do and decide nothing; `worker` hears all of them, `run` joins them.
//! `self_claim` is the kubelet's part, for kubelets that do not know SLM. The module must not know how the API server
//! is reached, nor how a drain goes.

mod anchors;
mod ask;
mod authority;
mod board;
mod claim;
mod deadline;
mod door;
mod endpoint;
mod endpoints;
mod error;
mod keeper;
mod lifecycle;
mod options;
mod registration;
mod rotate;
mod run;
mod self_claim;
mod service;
mod sockets;
mod stop;
mod transitions;
mod worker;

pub use ask::ask_kubelet;
pub use board::{Board, BoardError};
pub use claim::ENDS;
pub use error::SlmError;
pub use lifecycle::{
    ClaimStatus, LifecycleChange, LifecycleEvent, NodeSelection, Transition, TransitionChange,
};
pub use options::{OptionsError, Scope, SlmOptions, unique_instance};
pub use registration::Registration;
pub use run::{LookBack, Wires, run};
pub use scupper_contract::{GROUP as API_GROUP, PLUGIN_VERSION, VERSION as API_VERSION};
pub use self_claim::{Change, ClaimApi, ClaimError, Claimable, Claimant, Condition, Sight};
