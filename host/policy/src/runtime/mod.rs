//! Shared by all policies: the engine that runs them, the thread that measures their time, and the compiler's child.

pub(crate) mod bounds;
pub(crate) mod call;
pub(crate) mod cpu;
pub(crate) mod fault;
pub(crate) mod guest;
pub(crate) mod meter;
pub(crate) mod observer;
pub(crate) mod ticker;
pub(crate) mod usage;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_policy_compile::{CompileLimits, Compiler, hex, loading_engine, rules};
use sha2::{Digest, Sha256};
use thiserror::Error;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::imports::store_data::{self, StoreData};
use crate::imports::wasi;
use crate::runtime::observer::{NoObserver, Observer};
use crate::runtime::ticker::Ticker;
use crate::{Network, Secrets};

/// How the runtime is set up.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// The private directory of compiled policies. It is made with mode 0700 when the first policy is loaded.
    pub cache: PathBuf,
    /// A directory of the image with native code, if it exists. Missing code is compiled.
    pub shipped: Option<PathBuf>,
    /// The program whose subcommand `compile-policy` compiles: [`own_program`](crate::own_program) outside of tests.
    pub compiler: PathBuf,
    /// For log rates.
    pub clock: Clock,
    /// Where requests of policies go.
    pub network: Network,
    /// The memory of secrets; a reload must pass the same one.
    pub secrets: Secrets,
}

/// Runs policies.
pub struct Runtime {
    pub(crate) options: RuntimeOptions,
    pub(crate) engine: Engine,
    /// The imports of every policy.
    pub(crate) linker: Linker<StoreData>,
    /// The same, with the imports of the grant `wasi`.
    pub(crate) wasi_linker: Linker<StoreData>,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) compiler: Compiler,
    /// Identifies this driver in the marks of components being compiled.
    pub(crate) marks_as: Option<String>,
    /// A digest of the engine's version and configuration, and of the scan's rules: native code made for another engine
    /// or under other rules is ignored.
    pub(crate) fingerprint: String,
    /// Receives observations of the policies.
    pub(crate) observer: Arc<dyn Observer>,
}

/// Why policies cannot run at all.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The engine's configuration does not fit this machine.
    #[error("cannot set up the wasm engine: {0}")]
    Engine(String),
    /// The thread that measures the guests' time could not be started.
    #[error("cannot start the thread that measures the policies' CPU time")]
    Ticker(#[source] io::Error),
}

impl Runtime {
    /// Sets up everything that policies share.
    pub fn new(options: RuntimeOptions) -> Result<Self, RuntimeError> {
        let failed = |error: wasmtime::Error| RuntimeError::Engine(format!("{error:#}"));
        let engine = loading_engine().map_err(failed)?;
        let mut linker = Linker::new(&engine);
        store_data::link(&mut linker).map_err(failed)?;
        let mut wasi_linker = linker.clone();
        wasi::link(&mut wasi_linker).map_err(failed)?;
        let ticker = Ticker::start(engine.weak()).map_err(RuntimeError::Ticker)?;
        Ok(Self {
            linker,
            wasi_linker,
            ticker: Arc::new(ticker),
            compiler: Compiler::new(&options.compiler, CompileLimits::default()),
            marks_as: None,
            fingerprint: fingerprint(&engine),
            engine,
            options,
            observer: Arc::new(NoObserver),
        })
    }

    /// The clock of all its policies.
    pub const fn clock(&self) -> Clock {
        self.options.clock
    }

    /// The same, with these limits for compiling a component.
    #[must_use]
    pub fn compiling_within(mut self, limits: CompileLimits) -> Self {
        self.compiler = Compiler::new(&self.options.compiler, limits);
        self
    }

    /// The same, for a process that is restarted after its death: a component whose compilation killed it is not
    /// compiled again by a process with the same `pod`, the UID of the driver's pod (empty outside of pods).
    #[must_use]
    pub fn marking_compilations(mut self, pod: String) -> Self {
        self.marks_as = Some(pod);
        self
    }

    /// The same, with an observer of the policies loaded from now on.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }
}

fn fingerprint(engine: &Engine) -> String {
    let mut hasher = Fingerprint(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    rules().hash(&mut hasher);
    let mut hex = hex(&hasher.0.finalize());
    // Long enough to distinguish configurations; the names of files are long enough as it is.
    hex.truncate(16);
    hex
}

/// Wasmtime exposes the properties that its native code depends on only through `Hash`.
struct Fingerprint(Sha256);

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest is read from the field instead.
    fn finish(&self) -> u64 {
        0
    }
}
