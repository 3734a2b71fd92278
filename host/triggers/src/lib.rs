//! Triggers: each detects in its own way that a node should be drained or returned to service, and sends a request to
//! the driver. A trigger must not know the other edges, nor how a drain works: changes come in as streams, requests go
//! out.
#![deny(missing_docs)]

pub mod cordon;
pub mod drain_request;
mod driver_changes;
mod request;
pub mod slm;

pub use driver_changes::{DrainReportSender, DriverChange, DriverChanges};
pub use request::{
    DrainCommand, DrainReport, DriverState, NamedPods, RequestedSettings, ResumePoint, TriggerRequest,
};
