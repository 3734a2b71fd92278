//! The way through slurmrestd.

mod checking;
mod climbing;
mod configuration;
mod draining;
mod fake;
mod many;
mod naive;
mod recorded;
mod telling;
mod tokens;
mod traps;
mod undraining;
mod versions;
