//! The policy edge: loads policies, which are wasm components of the package `scupper:drain`, and calls them.
//!
//! A policy is untrusted code. It gets no system interfaces beyond its grants, and each call runs in a new store with
//! limits for memory, time and output. Every failure of a policy becomes an answer: no panic and no trap leaves this
//! crate. A child process with its own limits compiles wasm to native code; the driver loads only code that this child
//! compiled or that the image ships.
//!
//! ```text
//!  load   file ─► WasmFile ─► cache ─hit──► native ─► link ─► describe, check-config, phases ─► LoadedPolicy
//!                  (sealed)     └─miss─► compiler (child: scan, compile) ─┘
//!  call   plan, step ─► to_wit ─► store (limits) ─► guest ─► from_wit (checks, limits) ─► answer
//!                                                     └─► imports: log, config, cluster, facts, events, http (grants)
//! ```
//!
//! It must not know where drains come from, how to reach the API server, or what a plan means.
#![deny(missing_docs)]

mod imports;
mod load;
mod runtime;
mod wit;

pub use imports::access::{AccessError, ClusterAccess, FactError, PolicyEvent};
pub use imports::facts::cache::{DrainFacts, Facts};
pub use imports::facts::peers::KnownPeers;
pub use imports::http::{Endpoint, HttpMock, HttpMockAnswer, HttpSetupError, Network, Resolve, TlsError};
pub use imports::no_cluster::NoCluster;
pub use imports::secret::Secrets;
pub use load::compiled::{Compilation, precompile, time_compiling};
pub use load::error::{ConfigProblem, LoadError, LoadFault, MissingGrant, WantError};
pub use load::examine::{Examined, examine};
pub use load::flaws::Flaw;
pub use load::loaded::{LoadedPolicy, no_hooks, no_planner};
pub use load::policies::{Description, Policies};
pub use load::surroundings::{EnvironmentFindings, PolicyFinding, Severity};
pub use runtime::call::{DrainInfo, PlanCall, StepCall};
pub use runtime::fault::{CallError, CallFault, Overrun};
pub use runtime::observer::{AskResult, EmitResult, Observation, Observer};
pub use runtime::usage::{CallResult, Measure, PolicyUsage, Usage};
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
pub use scupper_policy_compile::{
    CacheError, CompileError, CompileLimit, CompileLimits, CompileTask, PrivateDir, PrivateDirError,
    Processor, SourceError, VERSION as WIT_VERSION, WasmFile, compile_child, compiler_lacks, own_program,
    sha256,
};
