//! A simulated cluster: a Kubernetes API server over HTTP, and the SLM part of a kubelet.
//!
//! For the demo, the tests, the benchmarks and policy authors. Not part of the driver.

pub mod api;
#[cfg(test)]
mod error_texts;
pub mod kubelet;
pub mod slinky;
