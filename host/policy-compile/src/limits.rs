//! The resource limits for compiling one component, and which of them a killed child has reached.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use crate::memory_room::MemoryRoom;

/// Wasm stack of a guest. The host's functions get the rest of the 2 MiB that a call has.
pub(crate) const WASM_STACK: usize = 512 * 1024;

/// Frames of a guest's backtrace that are kept.
pub(crate) const BACKTRACE_FRAMES: usize = 20;

/// A policy in an interpreted language includes its interpreter: 12 to 18 MiB.
pub(crate) const SOURCE_BYTES: u64 = 32 * 1024 * 1024;

/// Machine code is two to four times as long as wasm.
pub(crate) const NATIVE_BYTES: u64 = 256 * 1024 * 1024;

const MIB: u64 = 1024 * 1024;

/// A policy in Python takes half a minute. In builds with debug assertions the compiler itself may not be optimised, as in a
/// demo's: it takes five times as long.
const CPU_SECONDS: u64 = if cfg!(debug_assertions) { 299 } else { 59 };

/// With less memory than this, compiling is not attempted: the smallest policies need as much.
const LEAST_MEMORY: u64 = 32 * MIB;

/// Native code is written to memory that also counts for the container. It is two to four times as long as wasm, and
/// longer for a component with many small functions.
const LEAST_NATIVE: u64 = 32 * MIB;
const NATIVE_PER_WASM: u64 = 6;

/// How much longer than the driver the child waits before it ends itself: the driver's error says more.
const LATER: Duration = Duration::from_secs(10);

/// The limits of the compiler's child for one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Bytes of memory, this program and its stacks included.
    pub address_space: u64,
    /// CPU time, in whole seconds. The kernel ends the child at this limit with a signal that tells why, and a second
    /// later in any case.
    pub cpu_seconds: u64,
    /// Bytes of native code.
    pub native_bytes: u64,
    /// Wall-clock limit. The driver enforces it; the child ends itself a little later.
    pub wall: Duration,
}

/// The current allotment of the compiler's child: the limits, and the memory available in the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allotment {
    pub(crate) limits: CompileLimits,
    /// Bytes that the child may use besides its own program; `None`: only the limit of address space applies.
    memory: Option<u64>,
    /// The container's limit and its available memory, if that is tighter than the limits.
    memory_bound: Option<MemoryRoom>,
    /// The same for native code.
    native_bound: Option<MemoryRoom>,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            // A policy in Python takes 450 MB to compile.
            address_space: 4096 * MIB,
            cpu_seconds: CPU_SECONDS,
            native_bytes: NATIVE_BYTES,
            // For a hanging child only. It has a low priority, so on a busy node it mostly waits: what it uses is limited
            // by its CPU time.
            wall: Duration::from_secs(1800),
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
    /// Wall-clock limit.
    Wall(Duration),
    /// The memory available below the limit of the driver's container, in bytes.
    Container {
        /// Memory available for compiling.
        left: u64,
        /// The limit.
        limit: u64,
    },
}

impl CompileLimits {
    /// The allotment for a component of this size, given the memory available in the container. Fails if that is too
    /// little to start.
    pub(crate) fn within(self, room: Option<MemoryRoom>, wasm: u64) -> Result<Allotment, CompileLimit> {
        let Some(room) = room else {
            return Ok(Allotment {
                limits: self,
                memory: None,
                memory_bound: None,
                native_bound: None,
            });
        };
        let left = room.to_give();
        let native = LEAST_NATIVE
            .max(wasm.saturating_mul(NATIVE_PER_WASM))
            .max(left / 4);
        let native = native.min(left / 2).min(self.native_bytes);
        let memory = left.saturating_sub(native);
        if memory < LEAST_MEMORY {
            return Err(CompileLimit::container(room));
        }
        Ok(Allotment {
            limits: Self {
                native_bytes: native,
                ..self
            },
            memory: Some(memory),
            memory_bound: (memory < self.address_space).then_some(room),
            native_bound: (native < self.native_bytes).then_some(room),
        })
    }
}

impl CompileLimit {
    const fn container(room: MemoryRoom) -> Self {
        Self::Container {
            left: room.to_give(),
            limit: room.limit,
        }
    }
}

impl Allotment {
    /// As arguments of the child.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let limits = self.limits;
        let wall = limits.wall.saturating_add(LATER).as_secs();
        let mut arguments = vec![
            format!("--address-space={}", limits.address_space),
            format!("--cpu-seconds={}", limits.cpu_seconds),
            format!("--native-bytes={}", limits.native_bytes),
            format!("--wall-seconds={wall}"),
            format!("--parent={}", std::process::id()),
        ];
        arguments.extend(self.memory.map(|memory| format!("--memory={memory}")));
        arguments
    }

    /// The limit of native code that was reached.
    pub(crate) fn native(&self) -> CompileLimit {
        let own = CompileLimit::Native(self.limits.native_bytes);
        self.native_bound.map_or(own, CompileLimit::container)
    }

    /// The limit at which the kernel or the child's own allocator has ended the child; `None`: it ended for another
    /// reason.
    pub(crate) fn reached(&self, status: ExitStatus, said: &[u8]) -> Option<CompileLimit> {
        let signal = Signal::from_named_raw(status.signal()?)?;
        if signal == Signal::XCPU {
            Some(CompileLimit::Cpu(self.limits.cpu_seconds))
        } else if signal == Signal::XFSZ {
            Some(self.native())
        } else if signal == Signal::ABORT && says_no_memory(said) {
            let own = CompileLimit::AddressSpace(self.limits.address_space);
            Some(self.memory_bound.map_or(own, CompileLimit::container))
        } else {
            None
        }
    }
}

/// The last message of Rust's allocator.
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
            Self::Container { left, limit } => write!(
                f,
                "compiling it takes more than the {} MiB that the memory limit of {} MiB leaves: raise the memory limit of \
                 the driver's container (`resources.limits.memory`) or make the policy smaller",
                left / MIB,
                limit / MIB
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_ending_names_its_limit() {
        let limits = CompileLimits::default();
        let reported = |signal: Signal, said: &str| {
            let status = ExitStatus::from_raw(signal.as_raw());
            let reached = limits.within(None, 0).unwrap().reached(status, said.as_bytes());
            reached.map(|limit| limit.to_string())
        };
        let no_memory = "memory allocation of 1048576 bytes failed\n";
        let rows = [
            (
                Signal::XCPU,
                "",
                Some("compiling it took more than 299 s of CPU time"),
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
            assert_eq!(reported(signal, said).as_deref(), wanted, "{signal:?} {said}");
        }
        let failed = ExitStatus::from_raw(1 << 8);
        let usual = limits.within(None, 0).unwrap();
        assert_eq!(usual.reached(failed, no_memory.as_bytes()), None);
    }

    fn room(left: u64) -> Option<MemoryRoom> {
        Some(MemoryRoom {
            limit: 768 * MIB,
            left: left * MIB,
        })
    }

    #[test]
    fn memory_and_native_code_together_fit_into_the_containers_free_memory() {
        let limits = CompileLimits::default();
        for left in [130, 200, 400, 700, 5000] {
            for wasm in [0, 1, 18, 32] {
                let given = limits.within(room(left), wasm * MIB).unwrap();
                let sum = given.memory.unwrap() + given.limits.native_bytes;
                assert!(sum <= (left - 64) * MIB, "{left} MiB, {wasm} MiB: {given:?}");
            }
        }
        // A Python policy, beside a driver that uses 90 MiB.
        let python = limits.within(room(678), 18 * MIB).unwrap();
        assert!(python.memory >= Some(450 * MIB), "{python:?}");
    }

    #[test]
    fn a_bound_set_by_the_container_names_the_containers_limit() {
        let limits = CompileLimits::default();
        let reported = "compiling it takes more than the 336 MiB that the memory limit of 768 MiB leaves: raise the memory \
                    limit of the driver's container (`resources.limits.memory`) or make the policy smaller";
        let given = limits.within(room(400), MIB).unwrap();
        let ended = |signal: Signal| ExitStatus::from_raw(signal.as_raw());
        let no_memory = b"memory allocation of 64 bytes failed";
        let reached = [
            given.reached(ended(Signal::ABORT), no_memory),
            given.reached(ended(Signal::XFSZ), b""),
        ];
        for limit in reached {
            assert_eq!(limit.unwrap().to_string(), reported);
        }
        assert!(matches!(
            limits.within(room(100), MIB),
            Err(CompileLimit::Container { .. })
        ));
        // With more than enough memory the usual limits apply.
        let plenty = limits.within(room(9000), MIB).unwrap();
        assert_eq!(
            plenty.reached(ended(Signal::ABORT), no_memory),
            Some(CompileLimit::AddressSpace(limits.address_space))
        );
    }

    #[test]
    fn cpu_time_is_over_before_time_on_the_wall() {
        let limits = CompileLimits::default();
        assert!(Duration::from_secs(limits.cpu_seconds) < limits.wall);
    }
}
