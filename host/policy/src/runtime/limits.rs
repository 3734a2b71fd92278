//! Limits that are the same for all policies.

use std::time::Duration;

/// How often the driver interrupts a running guest: no guest occupies a worker thread for longer.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Wasm stack of a guest. The host's functions get the rest of the 2 MiB that a call has.
pub(crate) const WASM_STACK: usize = 512 * 1024;

/// Frames of a guest's backtrace that are kept.
pub(crate) const BACKTRACE_FRAMES: usize = 20;

/// A policy in an interpreted language includes its interpreter: 12 to 18 MiB.
pub(crate) const SOURCE_BYTES: u64 = 32 * 1024 * 1024;

/// Machine code is two to four times as long as wasm.
pub(crate) const NATIVE_BYTES: u64 = 256 * 1024 * 1024;
