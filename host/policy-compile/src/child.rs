//! The compiler's child: reads wasm from standard input, writes native code to standard output, opens nothing.
//!
//! Scanning and compiling third-party wasm may take any amount of memory and time, and the compiler may have bugs. So
//! both run in a child process that limits itself and drops all other rights before it reads the first byte, ends with
//! its driver, and can be killed by it.

use std::io::{self, Read, Write};
use std::process::{ExitCode, exit};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, nice, setrlimit};
use scupper_common::text::one_line;
use thiserror::Error;
use wasmtime::Engine;

use crate::SourceError;
use crate::compile_error::{ChildReport, unconfined_line};
use crate::engine_config::Processor;
use crate::limits::CompileLimits;
use crate::limits::SOURCE_BYTES;
use crate::{confine, engine_config, scan};

/// Standard input, output and error, and one spare.
const OPEN_FILES: u64 = 4;

/// The largest stack: the usual limit.
const STACK_BYTES: u64 = 8 * 1024 * 1024;

/// Stack of the timer thread.
const TIMER_STACK_BYTES: usize = 256 * 1024;

/// A child's task.
#[derive(Clone, Copy, Debug)]
pub struct CompileTask {
    /// The component may import the harmless part of WASI.
    pub wasi: bool,
    /// The processors to compile for.
    pub processor: Processor,
    /// The resources it may use.
    pub limits: CompileLimits,
    /// Bytes of memory besides the program's own, if the container has less available than the limits allow.
    pub memory: Option<u64>,
    /// The process whose end also ends the child; `None`: its parent.
    pub parent: Option<i32>,
}

#[derive(Debug, Error)]
pub(crate) enum ChildError {
    #[error("cannot limit the compiler's {0}: {1}")]
    Limit(&'static str, io::Error),
    #[error("cannot arrange to end with the driver: {0}")]
    Parent(io::Error),
    #[error("cannot start its timer: {0}")]
    Time(io::Error),
    #[error("cannot read the component: {0}")]
    Read(io::Error),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Compile(String),
    #[error("its native code is too large")]
    TooLarge,
    #[error("cannot write the native code: {0}")]
    Write(io::Error),
}

impl From<ChildError> for ChildReport {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Source(error) => Self::Source(error),
            ChildError::TooLarge => Self::TooLarge,
            other => Self::Other(one_line(&other.to_string(), 1024)),
        }
    }
}

/// The body of the hidden subcommand `compile-policy`.
pub fn compile_child(task: &CompileTask) -> ExitCode {
    match prepare(task).and_then(|engine| compile(task, &engine)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&ChildReport::from(error).line());
            ExitCode::FAILURE
        }
    }
}

/// The parent turns this into its own error; after the parent's end no process reads it.
fn say(line: &str) {
    let _told = writeln!(io::stderr(), "{line}").is_ok();
}

/// Limits this process and drops the rights it does not need. The order matters: each step removes something that the
/// steps before it need.
fn prepare(task: &CompileTask) -> Result<Engine, ChildError> {
    let parent = task.parent.and_then(Pid::from_raw);
    confine::end_with_parent(parent).map_err(ChildError::Parent)?;
    // Names it in `ps` and in the kernel's messages, where it would be `exe`.
    let _named = fs::write("/proc/self/comm", "compile-policy").is_ok();
    // Makes this process the kernel's first choice to kill. It protects nothing, and the container may forbid it.
    let _first = fs::write("/proc/self/oom_score_adj", "1000").is_ok();
    end_after(task.limits.wall).map_err(ChildError::Time)?;
    limit_self(&task.limits, address_space(task))?;
    // Created before the child drops its rights: the engine asks the kernel for the processor's features.
    let engine = engine_config::compiling(task.processor);
    let engine = engine.map_err(|error| ChildError::Compile(format!("{error:#}")))?;
    let lacking = confine::confine();
    if !lacking.is_empty() {
        say(&unconfined_line(lacking));
    }
    Ok(engine)
}

/// Ends this process at its wall-clock limit. The driver ends it sooner; this is for a child that its driver cannot
/// end. The thread is confined like the rest.
fn end_after(wall: Duration) -> io::Result<()> {
    let late = ChildError::Compile(format!("it took longer than {} s", wall.as_secs()));
    // Formatted in advance: at the limit there may be no memory for it.
    let line = format!("{}\n", ChildReport::from(late).line());
    let (ready, confined) = mpsc::channel();
    thread::Builder::new()
        .stack_size(TIMER_STACK_BYTES)
        .spawn(move || {
            let _lacking = confine::confine();
            let _heard = ready.send(()).is_ok();
            thread::sleep(wall);
            let _told = rustix::io::write(io::stderr(), line.as_bytes()).is_ok();
            exit(1);
        })?;
    // The address space of the thread counts for the program, not for the component.
    confined.recv().map_err(io::Error::other)
}

/// The limit of address space in bytes. It includes the program's own mappings, although these are shared with the
/// driver.
fn address_space(task: &CompileTask) -> u64 {
    let most = task.limits.address_space;
    let Some(memory) = task.memory else { return most };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = kib.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let program = kib.unwrap_or(0).saturating_mul(1024);
    program.saturating_add(memory).min(most)
}

fn limit_self(limits: &CompileLimits, address_space: u64) -> Result<(), ChildError> {
    // At the hard limit of CPU time the kernel kills the process without a reason; at the soft limit, one second
    // earlier, its signal tells why.
    let cpu = limits.cpu_seconds.saturating_add(1);
    // The limit can be lowered, not raised.
    let stack = getrlimit(Resource::Stack)
        .current
        .unwrap_or(STACK_BYTES)
        .min(STACK_BYTES);
    let bounds = [
        (Resource::As, "address space", address_space, address_space),
        (Resource::Stack, "stack", stack, stack),
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
    // Compiling must not take CPU time from pods.
    nice(10).map_err(|source| ChildError::Limit("priority", source.into()))?;
    Ok(())
}

fn compile(task: &CompileTask, engine: &Engine) -> Result<(), ChildError> {
    let mut wasm = Vec::new();
    io::stdin()
        .lock()
        .take(SOURCE_BYTES + 1)
        .read_to_end(&mut wasm)
        .map_err(ChildError::Read)?;
    if wasm.len() as u64 > SOURCE_BYTES {
        return Err(SourceError::TooLarge.into());
    }
    scan::scan(&wasm, task.wasi)?;
    let native = engine
        .precompile_component(&wasm)
        .map_err(|error| ChildError::Compile(format!("{error:#}")))?;
    if native.len() as u64 > task.limits.native_bytes {
        return Err(ChildError::TooLarge);
    }
    write(&native).map_err(ChildError::Write)
}

/// Bypasses the standard library's buffer, which would keep the last line and hide the error if it is lost.
fn write(mut native: &[u8]) -> io::Result<()> {
    while !native.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::write(io::stdout(), native))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => native = native.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}
