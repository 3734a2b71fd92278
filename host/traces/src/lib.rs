//! Drains as OpenTelemetry traces: the operations of a drain with their times, sent over OTLP to a configured
//! collector.
//!
//! A collector never blocks a drain: spans go into a bounded queue, and spans that do not fit are dropped and counted.
//! This crate must not know the purpose of a step: it receives the same notices as every other reporter.
//!
//! The exporter is our own. That of `opentelemetry-otlp` (read at 0.32) takes spans with our ids and needs no SDK
//! provider, but it cannot count what is lost: it only logs the spans that a collector rejects, and reports an error as a
//! text, so that a retry cannot tell a refusal from an outage. It also adds `opentelemetry`, `opentelemetry_sdk`,
//! `opentelemetry-proto` and `opentelemetry-http` to `tonic` and `prost`.

#![deny(missing_docs)]

mod collector;
mod command_span;
mod drain_trace;
#[cfg(test)]
mod error_texts;
mod exporter;
mod otlp;
mod pod_span;
mod settings;
mod span;

pub use collector::TracesError;
pub use drain_trace::DrainTrace;
pub use exporter::Traces;
pub use settings::{TraceSettings, TraceSettingsError, trace_settings};
