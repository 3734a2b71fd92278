//! A preloaded library that lets a test set the wall clock of a program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the library into `dir`.
pub(crate) fn library(dir: &Path) -> PathBuf {
    let library = dir.join("clock_steps.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/clock_steps.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    library
}
