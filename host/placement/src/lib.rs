//! Where the replacements of pods can run once some nodes are drained, by the filters of the Kubernetes scheduler.
//!
//! ```text
//!   nodes, residents ──► Scene ──┐
//!   drained nodes ───────────────┼─► Trial: each newcomer against each node, one after another ──► Placement
//!   newcomers ───────────────────┘
//! ```
//!
//! Besides, it counts how many pods are endpoints of each Service. What is not modelled ([`NOT_MODELLED`]), or not known, refuses no node: a pod without a node has none now, while a pod
//! with a node may still have to wait. It must not know clusters, clocks, drains, or who asks.
#![deny(missing_docs)]

mod filters;
mod model;
mod pod_terms;
mod refusal;
mod residents;
mod scene;
mod services;
mod spread;
mod trial;
pub mod wire;

pub use model::{
    Amounts, HostPort, Newcomer, Node, NodeTerm, PodTerm, Resident, Spread, TAINT_OF_CORDON, Taint,
    Toleration,
};
pub use refusal::{Filter, Refusal, Refusals};
pub use scene::Scene;
pub use services::{Service, Services};
pub use trial::{Placement, Trial};

/// What may keep a pod from a node, or bring one, and is not looked at.
pub const NOT_MODELLED: [&str; 9] = [
    "preemption",
    "autoscaling",
    "otherSchedulers",
    "schedulerExtensions",
    "pendingPods",
    "unboundVolumes",
    "volumeLimits",
    "dynamicResources",
    "namespaceLabels",
];
