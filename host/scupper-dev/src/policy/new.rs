//! `scupper policy new`

use std::process::ExitCode;

use super::args::NewArgs;
use crate::author::{self, Kind};
use scupper::Exit;
use scupper::{fail, print};
use scupper_report::Format;

pub(super) fn run(args: &NewArgs, format: Format) -> ExitCode {
    let kind = match (args.planner, args.hooks, args.both) {
        (_, _, true) | (true, true, _) => Kind::Both,
        (_, true, _) => Kind::Hooks,
        _ => Kind::Planner,
    };
    let dir = args.dir.strip_prefix(".").unwrap_or(&args.dir);
    match author::new(&args.name, kind, dir) {
        Ok(files) => {
            print(&match format {
                Format::Json => serde_json::json!({ "files": files }).to_string(),
                Format::Human => {
                    let mut lines: Vec<String> =
                        files.iter().map(|file| file.display().to_string()).collect();
                    let folder = dir.join(&args.name);
                    lines.push(format!("next: cd {} && scupper policy test", folder.display()));
                    lines.join("\n")
                }
            });
            Exit::Done.into()
        }
        Err(error) => fail(&error, Exit::Config),
    }
}
