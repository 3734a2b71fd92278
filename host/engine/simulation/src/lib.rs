//! Deterministic simulation of the drain engine: a seeded cluster with all its faults, and the invariants, checked
//! against the true state after every event.
//!
//! ```text
//! seed ─► scenario ─► world ── events ──► Drain ── commands ──► world ── … ──► outcome
//!                       │                   │
//!                       └──── truth ──► invariants ◄── events that the process received
//! ```
//!
//! A process that dies may leave its last request in flight, and the request may land after the next process has
//! started. A drain that is cancelled before it has seen the node therefore waits for it, for five seconds at most, and
//! lifts a cordon that carries its mark. A request that lands even later, after the end of that drain, leaves its
//! cordon behind: no process sees it at that time, and the next drain or uncordon of the node recognizes it by its
//! mark.
//!
//! The same seed gives the same commands, so a number reproduces a violation. It must not know the engine's internals:
//! it uses only the five public functions.

mod begun;
mod budgets;
mod calls;
mod clock;
mod cluster;
mod coverage;
mod crossings;
mod crowd;
mod driver;
mod ending;
mod faults;
mod forbidden;
mod forcing;
mod generator;
mod held;
mod hookbook;
mod hooks;
mod invariants;
mod knowledge;
mod late_pods;
mod planners;
mod plans;
mod policies;
mod queue;
mod raising;
mod rng;
mod run;
mod scenario;
mod server;
mod surge;
mod takeover;
mod timers;
mod trace;
mod undoing;
mod violation;
mod volumes;
mod watch;
mod world;

pub use calls::{Process, Step};
pub use coverage::{Coverage, EXPECTED};
pub use crossings::{FEATURES, NEVER_MEET};
pub use run::{Report, Results, Stop, any_pod, narrate, processes, run, run_many};
pub use violation::{INVARIANTS, Violation};
