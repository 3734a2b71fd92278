//! How guests are compiled and run. The compiler's child and the driver read the same page, so that what one makes the
//! other can load.

use std::num::NonZeroUsize;

use wasmtime::{Config, Engine, WasmBacktraceDetails, WasmFeatures};

use crate::runtime::limits::{BACKTRACE_FRAMES, WASM_STACK};

/// Features of wasm and of components that policies do without: more surface, and 64-bit memories would also break the
/// bound that a bounded memory puts on the time of one instruction.
const REFUSED: WasmFeatures = WasmFeatures::MEMORY64
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::SHARED_EVERYTHING_THREADS)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES)
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::STACK_SWITCHING);

/// For which processors code is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// The one that compiles, with everything it can do.
    #[default]
    This,
    /// Every one of its architecture, so without what only some can do.
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
pub(crate) fn loading() -> wasmtime::Result<Engine> {
    Engine::new(shared().enable_compiler(false))
}

fn shared() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .wasm_features(REFUSED, false)
        .concurrency_support(false)
        // The names of functions are enough; debug information would be parsed by the driver.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES));
    config
}
