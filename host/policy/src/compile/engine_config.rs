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

/// An engine that can compile.
pub(crate) fn compiling() -> wasmtime::Result<Engine> {
    Engine::new(&shared())
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
