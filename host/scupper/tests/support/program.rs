//! The program that is tested: the one that cargo has built for the test, or that of the variable `SCUPPER_PROGRAM`, as
//! `make test-arm64` sets it: built from the same sources for another machine.

use std::ffi::OsString;

pub(crate) fn program() -> OsString {
    std::env::var_os("SCUPPER_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_scupper").into())
}
