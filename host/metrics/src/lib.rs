//! The driver's counters, as OpenMetrics text over HTTP, and its health for probes.
//!
//! Callers pass plain values; names and labels come from closed lists, so text from a guest or a server never becomes a
//! label. This crate must not know its callers.
#![deny(missing_docs)]

mod drain_requests;
mod drains;
#[cfg(test)]
mod error_texts;
mod labels;
mod policies;
mod registry;
mod serve;

pub use drains::DrainMeter;
pub use policies::{PolicyCall, PolicyVersion};
pub use registry::Metrics;
pub use serve::{MetricsError, serve_metrics};
