//! `scupper replay --policy` and `--config`: what a recorded drain would have come to with other components of its policies,
//! or with other settings. Without these options `scupper` replays by itself.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scupper_config::{ConfigError, Configuration};
use scupper_report::Format;
use serde_json::json;
use thiserror::Error;

use crate::author::{Changes, NoSuchPolicy, OfflineRuntime};
use crate::differences::{Editions, compare_all, drains, markdown};
use scupper::{Exit, ReplayArgs, fail, print};

/// What is wrong with the options.
#[derive(Debug, Error)]
pub(crate) enum ReplayError {
    /// A policy and its file cannot be told apart.
    #[error("--policy {0}: must be NAME=FILE, such as slurm=slurm.wasm")]
    Policy(String),
    /// The configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

pub(crate) async fn run(args: &ReplayArgs, format: Format) -> ExitCode {
    let changes = match changes(args) {
        Ok(changes) => changes,
        Err(error) => return fail(&error, Exit::Config),
    };
    let workbench = match OfflineRuntime::new(None) {
        Ok(workbench) => workbench,
        Err(error) => return fail(&error, Exit::Bug),
    };
    let compared = compare_all(&workbench, args.files.clone(), |file: &Path, recorded| {
        let new = changes.of(recorded, file.to_owned())?;
        Ok::<_, NoSuchPolicy>([recorded.as_recorded().clone(), new])
    });
    let (all, exit) = match compared.await {
        Ok(compared) => compared,
        Err(error) => return fail(&error, Exit::Config),
    };
    // The errors say why.
    if all.is_empty() {
        return exit.into();
    }
    let editions = Editions {
        subject: changes.text(),
        columns: ["as recorded".to_owned(), "changed".to_owned()],
        old: "as recorded".to_owned(),
        not_played: changes.not_played(),
    };
    print(&match format {
        Format::Human => markdown(&editions, &all),
        Format::Json => {
            let policies = args.policies.iter();
            json!({
                "policies": policies.collect::<Vec<_>>(),
                "config": args.config,
                "drains": drains(&editions, &all),
            })
            .to_string()
        }
    });
    exit.into()
}

fn changes(args: &ReplayArgs) -> Result<Changes, ReplayError> {
    let component = |text: &String| match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(file)))
        }
        _ => Err(ReplayError::Policy(text.clone())),
    };
    let config = args.config.as_deref().map(scupper_config::read);
    Ok(Changes {
        components: args.policies.iter().map(component).collect::<Result<_, _>>()?,
        config: config.transpose()?.map(Configuration::in_reach),
    })
}
