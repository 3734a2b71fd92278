//! Drains and uncordons in the process of a command, with the driver's engine, Lease and reports.

mod abandoned;
mod back_in_service;
mod begin;
mod called_off;
mod cordon_ahead;
mod drain_factory;
pub(crate) mod nodes;
mod options;
mod own_flags;
mod plan_ahead;
mod run;

pub use abandoned::{DrainingProcess, draining_process, keeping_cordon};
pub use back_in_service::{back_in_service, remove_taint};
pub use cordon_ahead::CordonsAhead;
pub use options::{LocalOptions, RollBack};
pub use plan_ahead::would_begin_at_drivers;
pub use run::{NodeDrainResult, run};
