//! What all policies share: the engine that runs them, the thread that keeps their time, and the compiler's child.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::clock::Clock;

use super::config;

/// How the runtime is set up.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// The private directory of compiled policies. It is made with mode 0700 when it is not there.
    pub cache: PathBuf,
    /// The program whose subcommand `compile-policy` compiles: this one.
    pub compiler: PathBuf,
    /// For log rates.
    pub clock: Clock,
}

/// Runs policies.
pub struct Runtime {
    pub(super) options: RuntimeOptions,
    pub(super) engine: wasmtime::Engine,
}

/// Why policies cannot run at all.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The engine's configuration does not fit this machine.
    #[error("set up the wasm engine: {0}")]
    Engine(String),
    /// The thread that keeps the guests' time could not be started.
    #[error("start the policies' clock thread")]
    Ticker(#[source] io::Error),
}

impl Runtime {
    /// Sets everything up that policies share.
    pub fn new(options: RuntimeOptions) -> Result<Self, RuntimeError> {
        let engine = config::loading().map_err(|error| RuntimeError::Engine(format!("{error:#}")))?;
        Ok(Self { options, engine })
    }
}
