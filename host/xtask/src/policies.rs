//! Builds the repository's policies into components.

use std::path::Path;

use anyhow::{Context, Result, bail};
use scupper_builder::{Built, PROFILE, Package, Workspace};

use crate::workspace;

/// The names of the policies of the image: those under `plugins/`.
pub fn of_image(workspace: &Workspace) -> Vec<String> {
    let folder = workspace.root.join("plugins");
    let all = workspace::policies(workspace).into_iter();
    all.filter(|package| package.manifest_path.starts_with(&folder))
        .map(|package| package.name.clone())
        .collect()
}

/// Builds these policies, or all if none is named, into `out`, or else `policies` in the target directory.
pub fn build(workspace: &Workspace, names: &[String], out: Option<&Path>) -> Result<Vec<Built>> {
    let all = workspace::policies(workspace);
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|p| p.name == **name)) {
        let known: Vec<&str> = all.iter().map(|package| package.name.as_str()).collect();
        bail!("unknown policy `{unknown}`; known: {}", known.join(", "));
    }
    let chosen: Vec<&Package> = all
        .into_iter()
        .filter(|package| names.is_empty() || names.contains(&package.name))
        .collect();
    let out = out.map_or_else(|| workspace.components(), Path::to_path_buf);
    scupper_builder::compile(workspace, &chosen, PROFILE)?;
    chosen
        .into_iter()
        .map(|package| {
            let built = workspace.component(package, PROFILE, &out);
            built.with_context(|| format!("policy `{}`", package.name))
        })
        .collect()
}
