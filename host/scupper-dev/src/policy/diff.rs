//! `scupper policy diff`: what a changed policy would have made of recorded drains, as Markdown for a pull request.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::args::DiffArgs;
use super::run::not_loaded;
use crate::author::OfflineRuntime;
use crate::differences::{Editions, compare_all, drains, markdown};
use scupper::{Exit, fail, print};
use scupper_policy_spec::PolicySpec;
use scupper_recording::{Directory, ListError};
use scupper_report::Format;

pub(super) async fn run(args: &DiffArgs, format: Format) -> ExitCode {
    let (old, new) = match specs(args) {
        Ok(specs) => specs,
        Err(code) => return code,
    };
    let workbench = match OfflineRuntime::new(None) {
        Ok(workbench) => workbench,
        Err(error) => return fail(&error, Exit::Bug),
    };
    let files = match files(&args.on) {
        Ok(files) => files,
        Err(error) => return fail(&error, Exit::Config),
    };
    let compared = compare_all(&workbench, files, |_, recorded| {
        Ok::<_, Infallible>([&old, &new].map(|spec| recorded.with_only(spec)))
    });
    let (all, exit) = match compared.await {
        Ok(compared) => compared,
        Err(error) => return not_loaded(&error),
    };
    let columns = [&args.old, &args.new].map(|module| module.display().to_string());
    let editions = Editions {
        subject: format!("Policy {}", old.name),
        old: format!("with {}", args.old.display()),
        columns,
        not_played: vec!["other policies of these drains".to_owned()],
    };
    print(&match format {
        Format::Human => markdown(&editions, &all),
        Format::Json => {
            let drains = drains(&editions, &all);
            json!({"policy": old.name, "old": args.old, "new": args.new, "drains": drains}).to_string()
        }
    });
    exit.into()
}

/// Both editions with the same name and settings, those of whichever the configuration file has.
fn specs(args: &DiffArgs) -> Result<(PolicySpec, PolicySpec), ExitCode> {
    let of = |file: &Path| args.options.with(file).spec();
    let old = of(&args.old).or_else(|error| of(&args.new).map_err(|_| error));
    let old = old.map_err(|error| fail(&error, Exit::Config))?;
    let with = |file: &PathBuf| PolicySpec {
        file: file.clone(),
        ..old.clone()
    };
    Ok((with(&args.old), with(&args.new)))
}

fn files(on: &[PathBuf]) -> Result<Vec<PathBuf>, ListError> {
    let mut files = Vec::new();
    for path in on {
        if path.is_dir() {
            files.extend(Directory::new(path.clone(), None).files()?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}
