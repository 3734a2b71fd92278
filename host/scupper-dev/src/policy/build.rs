//! `scupper policy build`

use std::process::ExitCode;

use scupper_builder::{BuildError, Built, Workspace};

use super::args::BuildArgs;
use scupper::Exit;
use scupper::{fail, print};
use scupper_report::Format;

pub(super) fn run(args: &BuildArgs, format: Format) -> ExitCode {
    match build(args) {
        Ok(built) => {
            print(&result_text(&built, format));
            Exit::Done.into()
        }
        Err(error) => fail(&error, Exit::Config),
    }
}

fn build(args: &BuildArgs) -> Result<Built, BuildError> {
    let workspace = Workspace::of(&args.crate_dir)?;
    let package = workspace.package_in(&args.crate_dir)?;
    scupper_builder::compile(&workspace, &[package], &args.profile)?;
    let out = args.out.clone().unwrap_or_else(|| workspace.components());
    workspace.component(package, &args.profile, &out)
}

pub(super) fn result_text(built: &Built, format: Format) -> String {
    let Built {
        name,
        file,
        size,
        sha256,
    } = built;
    match format {
        Format::Human => format!("{}\n  {size} bytes, sha256:{sha256}", file.display()),
        Format::Json => {
            serde_json::json!({"name": name, "file": file, "bytes": size, "sha256": sha256}).to_string()
        }
    }
}
