//! Drains as traces of OpenTelemetry: what a drain did, with its times, sent to a collector over OTLP where the operator
//! names one.
//!
//! A collector can hold up nobody: spans go into a bounded queue, and what does not fit is dropped and counted. It must
//! not know what a step is for: it hears what everybody hears.

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
