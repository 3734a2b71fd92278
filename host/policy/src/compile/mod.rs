//! From a policy's file to native code: read, scan, compile in a child process, keep in the cache.

pub(crate) mod attempt;
pub(crate) mod cache;
pub(crate) mod child;
pub(crate) mod compile_error;
pub(crate) mod compiled;
pub(crate) mod compiler;
pub(crate) mod confine;
pub(crate) mod engine_config;
#[cfg(test)]
mod error_texts;
pub(crate) mod interfaces;
pub(crate) mod limits;
pub(crate) mod memory_room;
pub(crate) mod native;
pub(crate) mod scan;
mod shipped;
pub(crate) mod wasm_file;
