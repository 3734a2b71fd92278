//! `scupper compile-policy`: the child process that turns one policy into native code. The driver starts it, and so does
//! every program that loads policies.

use std::time::Duration;

use scupper_policy::{CompileLimits, CompileTask, Processor};

/// What the compiler may do and use; the driver says it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CompileArgs {
    /// The component may import the harmless part of WASI.
    #[arg(long)]
    wasi: bool,
    /// For every processor of this kind, not only for this one.
    #[arg(long)]
    any_processor: bool,
    /// Bytes of address space.
    #[arg(long, default_value_t = CompileLimits::default().address_space)]
    address_space: u64,
    /// Bytes of memory besides those of this program.
    #[arg(long)]
    memory: Option<u64>,
    /// Seconds of CPU time.
    #[arg(long, default_value_t = CompileLimits::default().cpu_seconds)]
    cpu_seconds: u64,
    /// Bytes of native code.
    #[arg(long, default_value_t = CompileLimits::default().native_bytes)]
    native_bytes: u64,
    /// Wall-clock limit in seconds.
    #[arg(long, default_value_t = CompileLimits::default().wall.as_secs())]
    wall_seconds: u64,
    /// The process that ends this one by ending.
    #[arg(long)]
    parent: Option<i32>,
}

impl From<CompileArgs> for CompileTask {
    fn from(args: CompileArgs) -> Self {
        Self {
            wasi: args.wasi,
            processor: if args.any_processor {
                Processor::Any
            } else {
                Processor::This
            },
            limits: CompileLimits {
                address_space: args.address_space,
                cpu_seconds: args.cpu_seconds,
                native_bytes: args.native_bytes,
                wall: Duration::from_secs(args.wall_seconds),
            },
            memory: args.memory,
            parent: args.parent,
        }
    }
}
