//! A policy's file, read once and kept as read, with all its possible errors.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use scupper_common::text::into_line;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files::digest::sha256_of;
use crate::files::sealed::Sealed;
use crate::interfaces::{IMPORTS, VERSION};
use crate::limits::SOURCE_BYTES;

/// How to build a policy without imports from WASI.
const WITHOUT_WASI: &str = "build it without WASI (Rust: --target wasm32-unknown-unknown, as `scupper policy build` does; \
                            TinyGo: -target=wasm-unknown; componentize-py: --stub-wasi; \
                            componentize-js: --disable clocks http random stdio fetch-event)";

/// Longest text of an error, in bytes.
const WORDS: usize = 1024;

/// A policy's component, as read. Cheap to clone.
#[derive(Clone)]
pub struct WasmFile(Sealed);

/// The errors of a policy's file. The driver repeats the scan's errors verbatim from the compiler's child.
#[derive(Debug, Deserialize, Error, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceError {
    /// The file cannot be read.
    #[error("it cannot be read")]
    #[serde(skip)]
    Read(#[source] io::Error),
    /// It is a directory, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is longer than any policy.
    #[error("it has more than {} MiB, the most a policy may have", SOURCE_BYTES >> 20)]
    TooLarge,
    /// It is not WebAssembly.
    #[error("it is not a WebAssembly file: its first bytes are not \\0asm")]
    NotWasm,
    /// It is native code, which the driver only loads if it made it itself.
    #[error("it holds native code, not WebAssembly: give the .wasm component it was compiled from")]
    Native,
    /// It is a module, not a component.
    #[error(
        "it is a core module, not a component: build it with `scupper policy build`, or wrap it with `wasm-tools component new`"
    )]
    CoreModule,
    /// It violates the rules of WebAssembly.
    #[error("it is not valid WebAssembly: {0}")]
    Invalid(String),
    /// It is a component, but not a policy.
    #[error(
        "it is not a policy: it does not export scupper:drain/about, as the worlds planner-policy, hooks-policy and policy \
         do; it exports {exports}"
    )]
    NotAPolicy {
        /// Its exports.
        exports: String,
    },
    /// It was built for another version of our package.
    #[error(
        "it is built for scupper:drain {theirs}, and this driver has {}.{}: build it against this driver's wit/",
        VERSION.0,
        VERSION.1
    )]
    Version {
        /// The version it was built for.
        theirs: String,
    },
    /// It exports neither a planner nor hooks.
    #[error("it exports neither scupper:drain/planner nor scupper:drain/hooks: it has nothing to do")]
    Idle,
    /// It imports the harmless part of WASI without the grant.
    #[error(
        "it imports {imports}, and policies have no system interfaces: {}, or add `wasi: true` to its grants \
         in the configuration file",
        WITHOUT_WASI
    )]
    Wasi {
        /// The imports.
        imports: String,
    },
    /// It imports parts of WASI that no policy gets.
    #[error(
        "it imports {imports}, which no policy gets: {}; with the grant `wasi` there are the clocks, random \
         numbers and standard output of WASI 0.2, and an empty environment",
        WITHOUT_WASI
    )]
    System {
        /// The imports.
        imports: String,
    },
    /// It imports something that the driver does not provide.
    #[error("it imports {imports}; this driver offers {of_ours} of scupper:drain", of_ours = functions())]
    Imports {
        /// The imports.
        imports: String,
    },
}

/// The interfaces with functions that a policy may import.
fn functions() -> String {
    let [_types, others @ .., last] = IMPORTS;
    format!("{} and {last}", others.join(", "))
}

impl WasmFile {
    /// The largest component that is read, in bytes.
    pub const MAX_BYTES: u64 = SOURCE_BYTES;

    /// Reads a policy's file. Blocks.
    pub fn read(file: &Path) -> Result<Self, SourceError> {
        let copy = Sealed::copy("policy", open(file)?, SOURCE_BYTES).map_err(SourceError::Read)?;
        copy.map(Self).ok_or(SourceError::TooLarge)
    }

    /// Reads a file that should have this digest. `None`: the digest differs, or the file cannot be read. Blocks.
    pub fn read_exactly(file: File, digest: &str) -> Option<Self> {
        let copy = Sealed::copy("policy", file, SOURCE_BYTES).ok()??;
        (copy.digest() == digest).then_some(Self(copy))
    }

    /// SHA-256 of a policy's file, in hex, without keeping it in memory. Blocks.
    pub fn digest_of(file: &Path) -> Result<String, SourceError> {
        sha256_of(open(file)?.take(SOURCE_BYTES + 1)).map_err(SourceError::Read)
    }

    /// SHA-256 of the component, in hex.
    pub fn digest(&self) -> &str {
        self.0.digest()
    }

    /// Reads the component from its beginning.
    pub fn reader(&self) -> impl Read + '_ {
        self.0.reader()
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// The component.
    pub(crate) const fn bytes(&self) -> &Sealed {
        &self.0
    }
}

impl SourceError {
    /// The same, escaped for a terminal: the text comes from a process that has read untrusted bytes.
    #[must_use]
    pub(crate) fn in_one_line(self) -> Self {
        let line = |text| into_line(text, WORDS);
        match self {
            Self::Invalid(text) => Self::Invalid(line(text)),
            Self::NotAPolicy { exports } => Self::NotAPolicy {
                exports: line(exports),
            },
            Self::Version { theirs } => Self::Version { theirs: line(theirs) },
            Self::Wasi { imports } => Self::Wasi {
                imports: line(imports),
            },
            Self::System { imports } => Self::System {
                imports: line(imports),
            },
            Self::Imports { imports } => Self::Imports {
                imports: line(imports),
            },
            Self::Read(_)
            | Self::NotAFile
            | Self::TooLarge
            | Self::NotWasm
            | Self::Native
            | Self::CoreModule
            | Self::Idle => self,
        }
    }
}

/// Opens a regular file that is not too long; it may grow while it is read.
fn open(file: &Path) -> Result<File, SourceError> {
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
    Ok(open)
}
