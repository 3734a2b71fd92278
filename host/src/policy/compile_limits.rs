//! What compiling one component may use, and which of it a child that was ended has used up.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use super::limits::NATIVE_BYTES;

const MIB: u64 = 1024 * 1024;

/// What the compiler's child may use for one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Bytes of memory, this program and its stacks included.
    pub address_space: u64,
    /// CPU time, in whole seconds. The kernel ends the child here, in a way that tells why; a second later in any case.
    pub cpu_seconds: u64,
    /// Bytes of native code.
    pub native_bytes: u64,
    /// Time on the wall.
    pub wall: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            // A policy in Python takes 450 MB to compile.
            address_space: 4096 * MIB,
            // It takes half a minute.
            cpu_seconds: 59,
            native_bytes: NATIVE_BYTES,
            // For a child that hangs. It gives way to everything else on the node, so that on a busy one it mostly waits.
            wall: Duration::from_secs(300),
        }
    }
}

/// A limit that a component has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileLimit {
    /// Bytes of address space.
    AddressSpace(u64),
    /// Seconds of CPU time.
    Cpu(u64),
    /// Bytes of native code.
    Native(u64),
    /// Time on the wall.
    Wall(Duration),
}

impl CompileLimits {
    /// As the child is told them. The time on the wall is kept for it.
    pub(super) fn arguments(&self) -> [String; 3] {
        [
            format!("--address-space={}", self.address_space),
            format!("--cpu-seconds={}", self.cpu_seconds),
            format!("--native-bytes={}", self.native_bytes),
        ]
    }

    /// The limit by which the kernel, or its own allocator, has ended the child; `None`: it ended otherwise.
    pub(super) fn reached(&self, status: ExitStatus, said: &[u8]) -> Option<CompileLimit> {
        let signal = Signal::from_named_raw(status.signal()?)?;
        if signal == Signal::XCPU {
            Some(CompileLimit::Cpu(self.cpu_seconds))
        } else if signal == Signal::XFSZ {
            Some(CompileLimit::Native(self.native_bytes))
        } else if signal == Signal::ABORT && says_no_memory(said) {
            Some(CompileLimit::AddressSpace(self.address_space))
        } else {
            None
        }
    }
}

/// What Rust's allocator says last.
fn says_no_memory(said: &[u8]) -> bool {
    let said = String::from_utf8_lossy(said);
    said.split_once("memory allocation of ")
        .is_some_and(|(_, rest)| rest.contains(" bytes failed"))
}

impl fmt::Display for CompileLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressSpace(bytes) => {
                write!(f, "compiling it took more than {} MiB of memory", bytes / MIB)
            }
            Self::Cpu(seconds) => write!(f, "compiling it took more than {seconds} s of CPU time"),
            Self::Native(bytes) => write!(f, "it became more than {} MiB of native code", bytes / MIB),
            Self::Wall(wall) => write!(f, "compiling it took longer than {} s", wall.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_ending_names_its_limit() {
        let limits = CompileLimits::default();
        let told = |signal: Signal, said: &str| {
            let status = ExitStatus::from_raw(signal.as_raw());
            let reached = limits.reached(status, said.as_bytes());
            reached.map(|limit| limit.to_string())
        };
        let no_memory = "memory allocation of 1048576 bytes failed\n";
        let rows = [
            (
                Signal::XCPU,
                "",
                Some("compiling it took more than 59 s of CPU time"),
            ),
            (
                Signal::XFSZ,
                "",
                Some("it became more than 256 MiB of native code"),
            ),
            (
                Signal::ABORT,
                no_memory,
                Some("compiling it took more than 4096 MiB of memory"),
            ),
            (Signal::ABORT, "thread 'main' has overflowed its stack", None),
            (Signal::ABORT, "memory allocation of", None),
            (Signal::SEGV, no_memory, None),
            (Signal::KILL, "", None),
        ];
        for (signal, said, wanted) in rows {
            assert_eq!(told(signal, said).as_deref(), wanted, "{signal:?} {said}");
        }
        let failed = ExitStatus::from_raw(1 << 8);
        assert_eq!(limits.reached(failed, no_memory.as_bytes()), None);
    }

    #[test]
    fn cpu_time_is_over_before_time_on_the_wall() {
        let limits = CompileLimits::default();
        assert!(Duration::from_secs(limits.cpu_seconds) < limits.wall);
    }
}
