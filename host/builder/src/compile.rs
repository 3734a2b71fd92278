//! Has cargo build the core modules.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::workspace::{Workspace, cargo};
use crate::{BuildError, Package};

/// Plain wasm: no operating system, so nothing of WASI is imported.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// The profile for policies.
pub const PROFILE: &str = "policy";

/// The profile for a workspace that does not define it: small, because policies are shipped in ConfigMaps, and with names, for
/// the backtraces of traps.
const OUR_PROFILE: [&str; 5] = [
    "inherits='release'",
    "opt-level='s'",
    "lto=true",
    "panic='abort'",
    "strip='debuginfo'",
];

/// Builds the modules of these packages one by one: built together they would share the features of their dependencies, and
/// each module would depend on the others. Cargo reports errors on standard error.
pub fn compile(workspace: &Workspace, packages: &[&Package], profile: &str) -> Result<(), BuildError> {
    for package in packages {
        package.check_cdylib()?;
    }
    packages
        .iter()
        .try_for_each(|package| build(workspace, package, profile))
}

fn build(workspace: &Workspace, package: &Package, profile: &str) -> Result<(), BuildError> {
    let mut build = cargo();
    build.current_dir(&workspace.root).args([
        "build",
        "--quiet",
        "--lib",
        "--target",
        TARGET,
        "--profile",
        profile,
        "--package",
        &package.name,
    ]);
    if profile == PROFILE && !workspace.defines_profile(PROFILE) {
        for setting in OUR_PROFILE {
            build.arg("--config").arg(format!("profile.{PROFILE}.{setting}"));
        }
    }
    let status = build.status().map_err(BuildError::Start)?;
    if status.success() {
        Ok(())
    } else if is_missing(TARGET) {
        Err(BuildError::NoTarget)
    } else {
        Err(BuildError::Compile(status))
    }
}

/// rustc names the folder of a target's libraries even if it does not exist.
fn is_missing(target: &str) -> bool {
    let rustc = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .stderr(Stdio::null())
        .output();
    rustc.is_ok_and(|answer| {
        let folder = String::from_utf8_lossy(&answer.stdout);
        answer.status.success() && !Path::new(folder.trim()).exists()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_build_target_is_detected_and_an_installed_one_is_not() {
        assert!(
            is_missing("wasm64-unknown-unknown"),
            "this repository is not built for it"
        );
        assert!(
            !is_missing(TARGET),
            "install it with `rustup target add {TARGET}`"
        );
    }
}
