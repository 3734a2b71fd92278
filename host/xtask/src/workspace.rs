//! What cargo knows about this workspace.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The parts of `cargo metadata` that are used here.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// Where the top `Cargo.toml` is.
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// Where builds end, whatever `CARGO_TARGET_DIR` and the configuration say.
    #[serde(rename = "target_directory")]
    pub target: PathBuf,
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub fn read() -> Result<Self> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version=1"])
            .stderr(Stdio::inherit())
            .output()
            .context("start `cargo metadata`")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed: {}", output.status);
        }
        serde_json::from_slice(&output.stdout).context("read the answer of `cargo metadata`")
    }

    /// The names of the packages that are policies: those under `plugins/` and `examples/policies/`.
    pub fn policies(&self) -> Vec<&str> {
        let folders = [self.root.join("plugins"), self.root.join("examples/policies")];
        let in_folder = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        let policies = self
            .packages
            .iter()
            .filter(|package| in_folder(&package.manifest_path));
        policies.map(|package| package.name.as_str()).collect()
    }
}

/// The cargo that runs us, or the one in the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
