//! Objects of the Kubernetes API as plain types, which the edges of the host share: `cluster` decodes into them, and
//! `policy`, `report` and `triggers` use them as they are.
//!
//! It knows neither the wire format of a client nor wasm; where the engine has a type, it uses that.
#![deny(missing_docs)]

mod change;
mod condition;
mod drain_request;
pub mod facts;
mod lifecycle;
mod workload;

pub use change::Change;
pub use condition::NodeCondition;
pub use drain_request::{DrainRequestFields, DrainRequestRef, Entity, RequestCondition};
pub use lifecycle::{ClaimStatus, LifecycleEvent, LifecycleTransition, TransitionNodes, VersionedEvent};
pub use workload::{BudgetDetails, UnreadyPod, Workload};
