//! The compiler's child: reads wasm from standard input, writes native code to standard output, opens nothing.
//!
//! Scanning and compiling somebody else's wasm may take any amount of memory and time, so it happens in a process that
//! limits itself before it reads the first byte and that the driver can kill.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use thiserror::Error;

use super::compile_limits::CompileLimits;
use super::complaint::Complaint;
use super::limits::SOURCE_BYTES;
use super::text::one_line;
use super::{SourceError, config, scan};

/// Standard input, output and error, and one to spare.
const OPEN_FILES: u64 = 4;

#[derive(Debug, Error)]
enum ChildError {
    #[error("limit the compiler's {0}: {1}")]
    Limit(&'static str, io::Error),
    #[error("read the component: {0}")]
    Read(io::Error),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Compile(String),
    #[error("it became too much native code")]
    TooLarge,
    #[error("write the native code: {0}")]
    Write(io::Error),
}

impl From<ChildError> for Complaint {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Source(error) => Self::Source(error),
            ChildError::TooLarge => Self::TooLarge,
            other => Self::Other(one_line(&other.to_string(), 1024)),
        }
    }
}

/// The body of the hidden subcommand `compile-policy`. `wasi`: the component may import the harmless part of the system.
pub fn compile_child(wasi: bool, limits: &CompileLimits) -> ExitCode {
    match limit_self(limits).and_then(|()| compile(wasi, limits)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let line = Complaint::from(error).line();
            // The parent makes its own error of this; when it is gone, nobody is left to tell.
            let _told = writeln!(io::stderr(), "{line}").is_ok();
            ExitCode::FAILURE
        }
    }
}

fn limit_self(limits: &CompileLimits) -> Result<(), ChildError> {
    // At the hard limit of CPU time the kernel kills, which says nothing; at the soft one, before, it says why.
    let cpu = limits.cpu_seconds.saturating_add(1);
    let bounds = [
        (
            Resource::As,
            "address space",
            limits.address_space,
            limits.address_space,
        ),
        (Resource::Cpu, "CPU time", limits.cpu_seconds, cpu),
        (Resource::Nofile, "open files", OPEN_FILES, OPEN_FILES),
        (
            Resource::Fsize,
            "file size",
            limits.native_bytes,
            limits.native_bytes,
        ),
        (Resource::Core, "core size", 0, 0),
    ];
    for (resource, what, soft, hard) in bounds {
        let limit = Rlimit {
            current: Some(soft),
            maximum: Some(hard),
        };
        setrlimit(resource, limit).map_err(|source| ChildError::Limit(what, source.into()))?;
    }
    // Pods leave no earlier because a policy is compiled. A driver that is killed leaves a child behind that ends at
    // the latest with its CPU time.
    nice(10).map_err(|source| ChildError::Limit("priority", source.into()))?;
    Ok(())
}

fn compile(wasi: bool, limits: &CompileLimits) -> Result<(), ChildError> {
    let mut wasm = Vec::new();
    io::stdin()
        .lock()
        .take(SOURCE_BYTES + 1)
        .read_to_end(&mut wasm)
        .map_err(ChildError::Read)?;
    if wasm.len() as u64 > SOURCE_BYTES {
        return Err(SourceError::TooLarge.into());
    }
    scan::scan(&wasm, wasi)?;
    let native = config::compiling()
        .and_then(|engine| engine.precompile_component(&wasm))
        .map_err(|error| ChildError::Compile(format!("{error:#}")))?;
    if native.len() as u64 > limits.native_bytes {
        return Err(ChildError::TooLarge);
    }
    write(&native).map_err(ChildError::Write)
}

/// Not through the buffer of the standard library, which would keep the last line and say nothing when that is lost.
fn write(native: &[u8]) -> io::Result<()> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    File::from(output).write_all(native)
}
