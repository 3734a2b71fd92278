//! Wasmtime's configuration for compiling and running guests. The compiler's child and the driver share it, so that the
//! driver can load the child's code.

use std::num::NonZeroUsize;

use wasmtime::{Config, Engine, WasmBacktraceDetails, WasmFeatures};

use crate::limits::{BACKTRACE_FRAMES, WASM_STACK};

/// Features of wasm and of components that policies do not need. They enlarge the attack surface, and 64-bit memories
/// would break the limit that a bounded memory sets on the time of one instruction.
const REFUSED: WasmFeatures = WasmFeatures::MEMORY64
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES)
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::STACK_SWITCHING);

/// The processors to compile for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// The compiling machine's processor, with all its features.
    #[default]
    This,
    /// Every processor of this architecture, so only with the features that all of them have.
    Any,
}

/// An engine that can compile.
pub(crate) fn compiling(processor: Processor) -> wasmtime::Result<Engine> {
    let mut config = shared();
    if processor == Processor::Any {
        config.target(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH))?;
    }
    Engine::new(&config)
}

/// An engine that can only load.
pub fn loading_engine() -> wasmtime::Result<Engine> {
    Engine::new(shared().enable_compiler(false))
}

fn shared() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .wasm_features(REFUSED, false)
        .concurrency_support(false)
        // Function names are enough; the driver would have to parse debug information.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES));
    config
}
