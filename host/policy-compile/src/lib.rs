//! From a policy's file to native code: reads, scans and compiles it in a child process, and keeps the result in a cache.
//!
//! The bytes are foreign. The driver only checks their digest and the first few; a child with limits of its own, without
//! files and without network, reads the rest. Native code is only loaded if that child made it: [`Native`] cannot be
//! built from anything else, except from a copy in a private directory or in the image whose digest is unchanged.
//!
//! It must not know what a policy does, or how it is called.
#![deny(missing_docs)]

mod attempt;
mod cache;
mod child;
mod compile_error;
mod compiler;
mod confine;
mod engine_config;
#[cfg(test)]
mod error_texts;
mod files;
mod interfaces;
mod limits;
mod memory_room;
mod native;
mod scan;
mod shipped;
mod wasi;
mod wasm_file;

pub use cache::{Cache, CacheError};
pub use child::{CompileTask, compile_child};
pub use compile_error::CompileFault;
pub use compiler::{CompileError, Compiler, Mark, compiler_lacks, own_program};
pub use engine_config::{Processor, loading_engine};
pub use files::digest::{hex, sha256};
pub use files::private_dir::{PrivateDir, PrivateDirError};
pub use interfaces::{VERSION, check_system, rules};
pub use limits::{CompileLimit, CompileLimits};
pub use native::{Native, load_native};
pub use scan::quick_scan;
pub use shipped::{fetch_shipped, write_shipped};
pub use wasm_file::{SourceError, WasmFile};
