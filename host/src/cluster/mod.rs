//! The cluster edge: the only part of the driver that writes to the API server.
//!
//! It turns API objects into the engine's types, and the engine's tasks into API calls. It must not know why
//! anything is done, nor the other edges: `app` feeds it tasks and takes its streams.

mod client;
mod conditions;
mod error;
mod lifecycle;
mod notes;

pub use client::{Cluster, ConnectError, ConnectOptions};
pub use conditions::NodeCondition;
pub use error::{ReadError, WriteError};
pub use lifecycle::{
    Change, LifecycleChange, LifecycleEvent, LifecycleTransition, Published, Scope, TransitionChange,
};
pub use notes::{KubernetesEvent, Severity};
