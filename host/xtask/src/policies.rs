//! Building policies into components.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use wit_component::DecodedWasm;

use crate::{
    encode,
    workspace::{Workspace, cargo},
};

/// Plain wasm: no operating system, so nothing of WASI is imported.
const TARGET: &str = "wasm32-unknown-unknown";
/// The profile in the top `Cargo.toml`.
const PROFILE: &str = "policy";

/// A policy as a file.
#[derive(Debug)]
pub struct Built {
    /// Its package.
    pub name: String,
    /// The component.
    pub file: PathBuf,
    /// Its size in bytes.
    pub size: usize,
    /// What it is known by.
    pub sha256: String,
}

/// Builds these policies, or all of them when none is named, into `out`, or else `policies` in the target directory.
pub fn build(workspace: &Workspace, names: &[String], out: Option<&Path>) -> Result<Vec<Built>> {
    let all = workspace.policies();
    if let Some(unknown) = names.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("there is no policy `{unknown}`; there are {}", all.join(", "));
    }
    let chosen: Vec<&str> = all
        .into_iter()
        .filter(|name| names.is_empty() || names.iter().any(|n| n == name))
        .collect();
    let out = out.map_or_else(|| workspace.target.join("policies"), Path::to_path_buf);
    fs::create_dir_all(&out).with_context(|| format!("make the folder {}", out.display()))?;

    compile(workspace, &chosen)?;
    let modules = workspace.target.join(TARGET).join(PROFILE);
    chosen
        .iter()
        .map(|name| component(name, &modules, &out))
        .collect()
}

fn compile(workspace: &Workspace, names: &[&str]) -> Result<()> {
    let mut build = cargo();
    build
        .current_dir(&workspace.root)
        .args(["build", "--quiet", "--target", TARGET, "--profile", PROFILE]);
    for name in names {
        build.args(["--package", name]);
    }
    let status = build.status().context("start `cargo build`")?;
    if status.success() {
        return Ok(());
    }
    if is_missing(TARGET) {
        bail!("the standard library for {TARGET} is missing; bring it with `rustup target add {TARGET}`");
    }
    bail!("`cargo build` of the policies failed: {status}");
}

/// rustc names the folder of a target's libraries whether it is there or not.
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

fn component(name: &str, modules: &Path, out: &Path) -> Result<Built> {
    let module = modules.join(name.replace('-', "_")).with_extension("wasm");
    let module =
        fs::read(&module).with_context(|| format!("read {}; is `{name}` a cdylib?", module.display()))?;
    let bytes = encode(&module).with_context(|| format!("policy `{name}`"))?;
    if !exports_about(&bytes) {
        bail!(
            "`{name}` is no policy yet: it needs a line like `scupper_sdk::export!(MyPolicy with planner);`"
        );
    }
    let file = out.join(name).with_extension("wasm");
    write_in_one(&file, &bytes)?;
    let sha256 = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(Built {
        name: name.to_owned(),
        file,
        size: bytes.len(),
        sha256,
    })
}

fn exports_about(component: &[u8]) -> bool {
    let Ok(DecodedWasm::Component(resolve, world)) = wit_component::decode(component) else {
        return false;
    };
    let mut exports = resolve
        .worlds
        .get(world)
        .into_iter()
        .flat_map(|world| world.exports.keys());
    exports.any(|key| resolve.name_world_key(key).starts_with("scupper:drain/about@"))
}

/// A driver may be watching the file: it must never see half of it.
fn write_in_one(file: &Path, bytes: &[u8]) -> Result<()> {
    let beside = file.with_extension("wasm.new");
    fs::write(&beside, bytes).with_context(|| format!("write {}", beside.display()))?;
    fs::rename(&beside, file).with_context(|| format!("rename {} to {}", beside.display(), file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_target_is_noticed_and_one_that_is_there_is_not() {
        assert!(
            is_missing("wasm64-unknown-unknown"),
            "nothing of this repository is built for it"
        );
        assert!(!is_missing(TARGET), "bring it with `rustup target add {TARGET}`");
    }

    #[test]
    fn a_module_without_the_export_macro_is_no_policy() {
        let component = encode(b"\0asm\x01\0\0\0").unwrap();
        assert!(!exports_about(&component));
    }
}
