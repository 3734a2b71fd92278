//! The way through slurmrestd.

mod climbing;
mod configuration;
mod draining;
mod fake;
mod naive;
mod recorded;
mod telling;
mod traps;
mod undraining;
mod versions;
