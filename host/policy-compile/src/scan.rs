//! Checks before any compilation: is the file a component, does it use our package, and does it import only what the
//! driver provides?
//!
//! The driver only checks the first bytes. The rest takes time and memory in proportion to untrusted bytes, so it runs
//! in the compiler's child.

use std::io::Read;

use scupper_common::text::one_line;
use wasmparser::{BinaryReaderError, Validator, WasmFeatures};

use crate::interfaces::Names;
use crate::{SourceError, WasmFile};

const COMPONENT_MAGIC: [u8; 8] = *b"\0asm\x0d\0\x01\0";
const MODULE_MAGIC: [u8; 8] = *b"\0asm\x01\0\0\0";
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";

/// Checks that the header declares a component. Blocks for a moment.
pub fn quick_scan(wasm: &WasmFile) -> Result<(), SourceError> {
    let mut first = Vec::with_capacity(COMPONENT_MAGIC.len());
    wasm.bytes()
        .reader()
        .take(COMPONENT_MAGIC.len() as u64)
        .read_to_end(&mut first)
        .map_err(SourceError::Read)?;
    check_magic(&first)
}

/// Checks that the bytes are a valid component of our package, and that it imports only the granted part of WASI. Takes
/// time in proportion to its length.
pub(crate) fn scan(bytes: &[u8], wasi: bool) -> Result<(), SourceError> {
    check_magic(bytes)?;
    let invalid = |error: BinaryReaderError| SourceError::Invalid(one_line(&error.to_string(), 300));
    Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(invalid)?;
    let names = Names::of(bytes).map_err(invalid)?;
    names.check_exports()?;
    names.check_imports(wasi)
}

fn check_magic(bytes: &[u8]) -> Result<(), SourceError> {
    if bytes.starts_with(&ELF_MAGIC) {
        return Err(SourceError::Native);
    }
    if bytes.starts_with(&MODULE_MAGIC) {
        return Err(SourceError::CoreModule);
    }
    if bytes.starts_with(&COMPONENT_MAGIC) {
        return Ok(());
    }
    Err(if bytes.starts_with(b"\0asm") {
        SourceError::Invalid("unknown version of the binary format".to_owned())
    } else {
        SourceError::NotWasm
    })
}

/// The features that the engine accepts, as far as the validator can name them; the compiler refuses the rest.
fn features() -> WasmFeatures {
    WasmFeatures::default()
        .difference(WasmFeatures::MEMORY64)
        .difference(WasmFeatures::THREADS)
        .union(WasmFeatures::COMPONENT_MODEL)
}
