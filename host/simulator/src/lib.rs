//! Stand-ins for a cluster: a Kubernetes API server over HTTP, and the part of a kubelet that speaks SLM.
//!
//! For the demo, the tests, the benchmarks and policy authors. No part of the driver.

pub mod api;
pub mod kubelet;
pub mod slinky;
