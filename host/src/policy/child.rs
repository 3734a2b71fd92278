//! The compiler's child: reads wasm from standard input, writes native code to standard output, opens nothing.
//!
//! Compiling somebody else's wasm may take any amount of memory and time, so it happens in a process that limits itself
//! before it reads the first byte and that the driver can kill.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use thiserror::Error;

use super::config;
use super::limits::{COMPILE_WALL, SOURCE_BYTES};

/// A policy in Python takes 450 MB to compile; the address space also holds this program and its stacks.
const ADDRESS_SPACE: u64 = 4 * 1024 * 1024 * 1024;

/// Standard input, output and error, and one to spare.
const OPEN_FILES: u64 = 4;

#[derive(Debug, Error)]
enum ChildError {
    #[error("limit the compiler's {0}")]
    Limit(&'static str, #[source] io::Error),
    #[error("read the component")]
    Read(#[source] io::Error),
    #[error("the component has more than {SOURCE_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Compile(String),
    #[error("write the native code")]
    Write(#[source] io::Error),
}

/// The body of the hidden subcommand `compile-policy`.
pub fn compile_child() -> ExitCode {
    match limit_self().and_then(|()| compile()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The parent reads this and puts it into its own error; when it is gone, nobody is left to tell.
            let _told = writeln!(io::stderr(), "{error}").is_ok();
            ExitCode::FAILURE
        }
    }
}

fn limit_self() -> Result<(), ChildError> {
    let hard = [
        (Resource::As, "address space", ADDRESS_SPACE),
        (Resource::Cpu, "CPU time", COMPILE_WALL.as_secs()),
        (Resource::Nofile, "open files", OPEN_FILES),
        (Resource::Fsize, "file size", 0),
        (Resource::Core, "core size", 0),
    ];
    for (resource, what, bound) in hard {
        let limit = Rlimit {
            current: Some(bound),
            maximum: Some(bound),
        };
        setrlimit(resource, limit).map_err(|source| ChildError::Limit(what, source.into()))?;
    }
    // Pods leave no earlier because a policy is compiled. A driver that is killed leaves a child behind that ends at
    // the latest with its CPU time.
    nice(10).map_err(|source| ChildError::Limit("priority", source.into()))?;
    Ok(())
}

fn compile() -> Result<(), ChildError> {
    let mut wasm = Vec::new();
    io::stdin()
        .lock()
        .take(SOURCE_BYTES + 1)
        .read_to_end(&mut wasm)
        .map_err(ChildError::Read)?;
    if wasm.len() as u64 > SOURCE_BYTES {
        return Err(ChildError::TooLarge);
    }
    let native = config::compiling()
        .and_then(|engine| engine.precompile_component(&wasm))
        .map_err(|error| ChildError::Compile(format!("{error:#}")))?;
    io::stdout().lock().write_all(&native).map_err(ChildError::Write)
}
