//! A workspace as cargo describes it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::compile::TARGET;
use crate::{BuildError, Built, component};

/// The used parts of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// The folder of the top `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// The target directory, from `CARGO_TARGET_DIR` or the configuration.
    #[serde(rename = "target_directory")]
    pub target: PathBuf,
    /// Its members.
    pub packages: Vec<Package>,
}

/// A member.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

impl Workspace {
    /// The workspace of the current directory.
    pub fn read() -> Result<Self, BuildError> {
        Self::ask(&[])
    }

    /// The workspace that a crate's folder belongs to.
    pub fn of(folder: &Path) -> Result<Self, BuildError> {
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(BuildError::NoCrate(folder.to_owned()));
        }
        Self::ask(&["--manifest-path".as_ref(), manifest.as_os_str()])
    }

    fn ask(of: &[&OsStr]) -> Result<Self, BuildError> {
        let mut ask = cargo();
        ask.args(["metadata", "--no-deps", "--format-version=1"])
            .args(of)
            .stderr(Stdio::inherit());
        let output = ask.output().map_err(BuildError::Start)?;
        if !output.status.success() {
            return Err(BuildError::Metadata(output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(BuildError::Answer)
    }

    /// The package whose `Cargo.toml` is in this folder.
    pub fn package_in(&self, folder: &Path) -> Result<&Package, BuildError> {
        let manifest = folder.join("Cargo.toml");
        let same = |package: &&Package| match (package.manifest_path.canonicalize(), manifest.canonicalize())
        {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        };
        self.packages
            .iter()
            .find(same)
            .ok_or_else(|| BuildError::NoPackage(manifest.clone()))
    }

    /// The default folder for components.
    pub fn components(&self) -> PathBuf {
        self.target.join("policies")
    }

    /// Builds the component of a package from the module of a profile.
    pub fn component(&self, package: &Package, profile: &str, out: &Path) -> Result<Built, BuildError> {
        let library = package.check_cdylib()?;
        let folder = if profile == "dev" { "debug" } else { profile };
        let module = self
            .target
            .join(TARGET)
            .join(folder)
            .join(library.replace('-', "_"));
        component(&package.name, &module.with_extension("wasm"), out)
    }

    /// Whether the workspace defines the profile itself.
    pub(crate) fn defines_profile(&self, name: &str) -> bool {
        let manifest = fs::read_to_string(self.root.join("Cargo.toml")).unwrap_or_default();
        manifest
            .lines()
            .any(|line| line.trim() == format!("[profile.{name}]"))
    }
}

impl Package {
    /// The name of the library that becomes a module.
    pub(crate) fn check_cdylib(&self) -> Result<&str, BuildError> {
        let is_cdylib = |target: &&Target| target.crate_types.iter().any(|kind| kind == "cdylib");
        let library = self.targets.iter().find(is_cdylib);
        library
            .map(|target| target.name.as_str())
            .ok_or_else(|| BuildError::NoCdylib {
                package: self.name.clone(),
            })
    }
}

/// The cargo that runs this program, or the one in `PATH`.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
