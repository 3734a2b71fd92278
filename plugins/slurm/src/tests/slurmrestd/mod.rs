//! `way: slurmrestd`.

mod checking;
mod climbing;
mod configuration;
mod draining;
mod fake;
mod looking_again;
mod many;
mod naive;
mod node_events;
mod rebooting;
mod recorded;
mod sharing;
mod tokens;
mod traps;
mod undraining;
mod unheld;
mod unusual;
mod versions;
