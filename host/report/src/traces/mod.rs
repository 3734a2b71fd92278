//! Drains as OpenTelemetry traces: the operations of a drain with their times, sent over OTLP to a configured
//! collector.
//!
//! A collector never blocks a drain: spans go into a bounded queue, and spans that do not fit are dropped and counted.
//! This module must not know the purpose of a step: it receives the same notices as every other reporter.

mod collector;
mod command_span;
mod drain_trace;
mod exporter;
mod otlp;
mod pod_span;
mod settings;
mod span;

#[cfg(test)]
pub(crate) use collector::SendError;
pub use collector::TracesError;
pub use drain_trace::DrainTrace;
pub use exporter::Traces;
pub use settings::{TraceSettings, TraceSettingsError, trace_settings};
