//! What the driver counts, as OpenMetrics text over HTTP.
//!
//! It is told plain values and keeps them under names and labels from closed lists: what a guest or a server says never
//! becomes a label. It must not know who tells it.

mod drains;
mod labels;
mod policies;
mod registry;
mod serve;

pub use drains::DrainMeter;
pub use policies::{PolicyCall, PolicyVersion};
pub use registry::Metrics;
pub use serve::{MetricsError, MetricsServer};
