//! The packages of this workspace that are policies.

pub use scupper_builder::Workspace;

use scupper_builder::Package;

/// Those under `plugins/` and `examples/policies/`.
pub(crate) fn policies(workspace: &Workspace) -> Vec<&Package> {
    let folders = [
        workspace.root.join("plugins"),
        workspace.root.join("examples/policies"),
    ];
    let is_policy = |package: &&Package| {
        folders
            .iter()
            .any(|folder| package.manifest_path.starts_with(folder))
    };
    workspace.packages.iter().filter(is_policy).collect()
}
