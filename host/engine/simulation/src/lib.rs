//! Deterministic simulation of the drain engine: a seeded cluster with everything that goes wrong in one, and the
//! invariants, held against the truth after every event.
//!
//! ```text
//! seed ─► scenario ─► world ── events ──► Drain ── commands ──► world ── … ──► outcome
//!                       │                   │
//!                       └──── truth ──► invariants ◄── what the process was told
//! ```
//!
//! A process that dies leaves its last request on the way, and it may land after the next process has begun. A drain
//! that is taken back before it has seen the node therefore waits for it, for five seconds at most, and lifts what
//! carries its mark. A request that lands later still, when that drain is over, leaves its cordon behind: no process sees it
//! then, and the next drain or uncordon of the node knows it by its mark.
//!
//! The same seed gives the same commands, so a violation is a number. It must not know the engine's inside: all it
//! uses are the five verbs.

mod budgets;
mod clock;
mod cluster;
mod coverage;
mod driver;
mod ending;
mod faults;
mod generator;
mod hookbook;
mod hooks;
mod invariants;
mod knowledge;
mod planners;
mod plans;
mod policies;
mod queue;
mod rng;
mod run;
mod scenario;
mod server;
mod takeover;
mod timers;
mod trace;
mod violation;
mod watch;
mod world;

pub use coverage::{Coverage, EXPECTED};
pub use run::{Faults, Report, Stop, Tally, narrate, run, run_many};
pub use violation::{INVARIANTS, Violation};
