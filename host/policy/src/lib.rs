//! The policy edge: loads wasm components of the package `scupper:drain` and calls them.
//!
//! A policy is untrusted code. It runs without system interfaces, with bounded memory, time and output, in a
//! store of its own for every call, and whatever it does becomes an answer: no panic and no trap leaves this module.
//! Native code is made from wasm by a child process with limits of its own; the driver only loads what that child made.
//!
//! ```text
//!  file ─► WasmFile ─► cache ──hit──► native ─► linked ─► probe (describe, check-config, phases) ─► LoadedPolicy
//!           (sealed)    └─miss─► compiler (child: scan, compile) ─┘
//!  plan, step ─► store (limits) ─► guest ─► convert (caps) ─► answer
//! ```
//!
//! It must not know where drains come from, how the API server is spoken to, or what a plan means.
#![deny(missing_docs)]

mod compile;
mod files;
mod imports;
mod load;
mod runtime;
mod wit;

pub use compile::cache::CacheError;
pub use compile::child::{CompileTask, compile_child};
pub use compile::compiled::{Compilation, precompile, time_compiling};
pub use compile::compiler::{CompileError, compiler_lacks};
pub use compile::engine_config::Processor;
pub use compile::interfaces::VERSION as WIT_VERSION;
pub use compile::limits::{CompileLimit, CompileLimits};
pub use compile::wasm_file::{SourceError, WasmFile};
pub use files::digest::sha256;
pub use files::private_dir::{PrivateDir, PrivateDirError};
pub use imports::access::{AccessError, ClusterAccess, PolicyEvent};
pub use imports::http::{Endpoint, HttpMock, HttpMockAnswer, HttpSetupError, Network, Resolve, TlsError};
pub use imports::no_cluster::NoCluster;
pub use imports::secret::Secrets;
pub use load::error::{ConfigProblem, LoadError, LoadFault, MissingGrant, WantError};
pub use load::examine::{Examined, examine};
pub use load::flaws::Flaw;
pub use load::loaded::{LoadedPolicy, no_hooks, no_planner};
pub use load::policies::{Description, Policies};
pub use load::surroundings::{PolicyChecked, PolicyFinding, Severity};
pub use runtime::call::{DrainInfo, PlanCall, StepCall};
pub use runtime::fault::{CallError, CallFault, Overrun};
pub use runtime::observer::{EmitResult, Observation, Observer};
pub use runtime::usage::{CallResult, Measure, PolicyUsage, Usage};
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
