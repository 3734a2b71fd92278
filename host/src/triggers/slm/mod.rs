//! Specialized Lifecycle Management: the driver as a kubelet plugin.
//!
//! ```text
//!  kubelet ──► sockets: registration, service ──► call ─┐                  ┌─► Demand   (to the driver)
//!  API     ──► streams: events, transitions ────────────┼─► door (decides) ┼─► answer   (to the kubelet)
//!  driver  ──► Standing ────────────────────────────────┘                  └─► Board    (transitions, warnings)
//! ```
//!
//! It must not know how the API server is reached, nor how a drain goes.

mod board;
mod lifecycle;
mod options;
mod run;

pub use board::{Board, BoardError};
pub use lifecycle::{
    ClaimStatus, LifecycleChange, LifecycleEvent, NodeSelection, Transition, TransitionChange,
};
pub use options::{OptionsError, Scope, SlmOptions, unique_instance};
pub use run::{Registration, SlmError, Wires, run};
