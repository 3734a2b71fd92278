//! `way: slurmrestd`.

mod checking;
mod climbing;
mod configuration;
mod draining;
mod fake;
mod many;
mod naive;
mod node_events;
mod recorded;
mod tokens;
mod traps;
mod undraining;
mod versions;
