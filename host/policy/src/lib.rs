//! The policy edge: loads wasm components of the package `scupper:drain` and calls them.
//!
//! A policy is somebody else's code. It runs without system interfaces, with bounded memory, time and output, in a
//! store of its own for every call, and whatever it does becomes an answer: no panic and no trap leaves this module.
//! Native code is made from wasm by a child process with limits of its own; the driver only loads what that child made.
//!
//! ```text
//!  file ─► source ─► cache ──hit──► native ─► linked ─► probe (describe, check-config, phases) ─► Policy
//!  (sealed)            └─miss─► compiler (child: scan, compile) ─┘
//!  plan, step ─► store (limits) ─► guest ─► convert (caps) ─► answer
//! ```
//!
//! It must not know where drains come from, how the API server is spoken to, or what a plan means.
#![deny(missing_docs)]

mod access;
mod answer;
mod attempt;
mod bindings;
mod bounds;
mod bucket;
mod cache;
mod call;
mod child;
mod compile_limits;
mod compiled;
mod compiler;
mod complaint;
mod config;
mod confine;
mod cpu;
mod digest;
mod error;
mod events;
mod examine;
mod fault;
mod flaws;
mod former;
mod given;
mod guest;
mod host;
mod http;
mod limits;
mod load;
mod loaded;
mod log;
mod memory_room;
mod meter;
mod names;
mod native;
mod no_cluster;
mod observer;
mod owned;
mod policies;
mod private;
mod reload;
mod remedy;
mod runtime;
mod scan;
mod schema;
mod sealed;
mod secret;
mod source;
mod surroundings;
mod ticker;
mod usage;
mod view;
mod wasi;

pub use access::{AccessError, ClusterAccess, PolicyEvent};
pub use cache::CacheError;
pub use call::{DrainInfo, PlanCall, StepCall};
pub use child::{CompileTask, compile_child};
pub use compile_limits::{CompileLimit, CompileLimits};
pub use compiled::{Compilation, time_compiling};
pub use compiler::{CompileError, compiler_lacks};
pub use error::{ConfigProblem, LoadError, LoadFault, MissingGrant, WantError};
pub use examine::{Examined, examine};
pub use fault::{CallError, CallFault, Overrun};
pub use flaws::Flaw;
pub use http::{Endpoint, HttpSetupError, Network, Resolve, StandIn, StandInAnswer, TlsError};
pub use names::VERSION as WIT_VERSION;
pub use no_cluster::NoCluster;
pub use observer::{EmitResult, Observation, Observer};
pub use policies::{Description, Policies};
pub use private::PrivateDirError;
pub use reload::{
    Catalogue, Control, ControlError, PolicySource, ReadWanted, ReloadNotice, ReloadOptions, ReloadRules,
    Reloader, Session, SlotProblem, SlotState, SlotStatus, SourceText, StartError, StoreError, Straggler,
    Understand, Wanted, WatchOptions, ask_list, ask_rollback, keeps_configuration,
};
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
pub use secret::Secrets;
pub use source::SourceError;
pub use surroundings::{PolicyChecked, PolicyFinding, Severity};
pub use usage::{CallResult, Measure, PolicyUsage, Usage};
