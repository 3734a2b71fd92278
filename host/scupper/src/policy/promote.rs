//! `scupper policy promote`: the change of a configuration file that makes a shadow active. It changes nothing itself.

use std::process::ExitCode;

use super::args::PromoteArgs;
use crate::exit::Exit;
use crate::output::{fail, print};
use scupper_report::Format;

pub(super) fn run(args: &PromoteArgs, format: Format) -> ExitCode {
    match scupper_config::promote(&args.config, &args.name) {
        Ok(promotion) => {
            print(&match format {
                Format::Human => promotion.diff.trim_end().to_owned(),
                Format::Json => serde_json::json!({
                    "policy": args.name, "replaces": promotion.replaces, "diff": promotion.diff,
                })
                .to_string(),
            });
            Exit::Done.into()
        }
        Err(error) => fail(&error, Exit::Config),
    }
}
