//! A policy's file, before anything of it is compiled: is it a component, does it speak our package, and does it import
//! only what we have?

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Take};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use thiserror::Error;
use wasmparser::{Validator, WasmFeatures};

use super::limits::SOURCE_BYTES;
use super::names::{Names, VERSION};
use super::native::hex;
use super::text::one_line;

const COMPONENT_MAGIC: [u8; 8] = *b"\0asm\x0d\0\x01\0";
const MODULE_MAGIC: [u8; 8] = *b"\0asm\x01\0\0\0";
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// What is wrong with a policy's file.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// It is a directory, a pipe or a device.
    #[error("it is no regular file")]
    NotAFile,
    /// It is longer than any policy.
    #[error("it has more than {} MiB, the most a policy may have", SOURCE_BYTES >> 20)]
    TooLarge,
    /// It is something else.
    #[error("it is no WebAssembly file: its first bytes are not \\0asm")]
    NotWasm,
    /// It is native code, which is only loaded when this driver itself made it.
    #[error("it holds native code, not WebAssembly: give the .wasm component it was compiled from")]
    Native,
    /// It is a module, not a component.
    #[error(
        "it is a core module, not a component: build it with `cargo xtask`, or wrap it with `wasm-tools component new`"
    )]
    CoreModule,
    /// It does not follow the rules of WebAssembly.
    #[error("it is not valid WebAssembly: {0}")]
    Invalid(String),
    /// It is some other component.
    #[error(
        "it is no policy: it does not export scupper:drain/about, as the worlds planner-policy, hooks-policy and policy \
         do; it exports {exports}"
    )]
    NotAPolicy {
        /// What it exports.
        exports: String,
    },
    /// It was built against another version of our package.
    #[error(
        "it speaks scupper:drain {theirs} and this driver speaks {}.{}: build it against this driver's wit/",
        VERSION.0,
        VERSION.1
    )]
    Version {
        /// The version it was built against.
        theirs: String,
    },
    /// It neither plans nor acts.
    #[error("it exports neither scupper:drain/planner nor scupper:drain/hooks: it has nothing to do")]
    Idle,
    /// It wants the harmless part of the system, and was not granted it.
    #[error(
        "it imports {imports}, and policies have no system interfaces: build it for wasm32-unknown-unknown instead of a \
         wasi target, or add `wasi: true` to its grants in the configuration file"
    )]
    Wasi {
        /// The imports.
        imports: String,
    },
    /// It wants from the system what no policy gets.
    #[error(
        "it imports {imports}, which no policy gets: with the grant `wasi` there are the clocks, random numbers and \
         standard output of WASI 0.2, and an empty environment"
    )]
    System {
        /// The imports.
        imports: String,
    },
    /// It imports what we do not have.
    #[error("it imports {imports}; this driver has log, config, cluster, events and http of scupper:drain")]
    Imports {
        /// The imports.
        imports: String,
    },
}

/// Reads a policy's file. Blocks.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes).map_err(SourceError::Read)?;
    if bytes.len() as u64 > SOURCE_BYTES {
        return Err(SourceError::TooLarge);
    }
    Ok(bytes)
}

/// SHA-256 of a policy's file, in hex, without holding all of it. Blocks.
pub(super) fn digest(file: &Path) -> Result<String, SourceError> {
    let mut open = open(file)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match open.read(&mut chunk) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(length) => hasher.update(chunk.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SourceError::Read(error)),
        }
    }
}

/// A regular file that is not too long; of one that grows, a little more than may be.
fn open(file: &Path) -> Result<Take<File>, SourceError> {
    // A named pipe would block the open itself.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(file)
        .map_err(SourceError::Read)?;
    let metadata = open.metadata().map_err(SourceError::Read)?;
    if !metadata.is_file() {
        return Err(SourceError::NotAFile);
    }
    if metadata.len() > SOURCE_BYTES {
        return Err(SourceError::TooLarge);
    }
    Ok(open.take(SOURCE_BYTES + 1))
}

/// Checks that the bytes are a valid component of our package. Takes time in proportion to its length.
pub(super) fn inspect(bytes: &[u8]) -> Result<(), SourceError> {
    if bytes.starts_with(&ELF_MAGIC) {
        return Err(SourceError::Native);
    }
    if bytes.starts_with(&MODULE_MAGIC) {
        return Err(SourceError::CoreModule);
    }
    if !bytes.starts_with(&COMPONENT_MAGIC) {
        return Err(if bytes.starts_with(b"\0asm") {
            SourceError::Invalid("unknown version of the binary format".to_owned())
        } else {
            SourceError::NotWasm
        });
    }
    let invalid =
        |error: wasmparser::BinaryReaderError| SourceError::Invalid(one_line(&error.to_string(), 300));
    Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(invalid)?;
    let names = Names::of(bytes).map_err(invalid)?;
    names.check_exports()?;
    names.check_imports()
}

/// What the engine accepts, as far as the validator has names for it; the compiler refuses the rest.
fn features() -> WasmFeatures {
    WasmFeatures::default()
        .difference(WasmFeatures::MEMORY64)
        .difference(WasmFeatures::THREADS)
        .union(WasmFeatures::COMPONENT_MODEL)
}
