//! `scupper policy diff`: what a changed policy would have made of recorded drains, as Markdown for a pull request.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::args::DiffArgs;
use super::run::not_loaded;
use crate::author::{Comparison, DifferentResult, NotPlayable, OfflineRuntime, RecordedCluster, compare};
use scupper::{Exit, fail, print};
use scupper_common::clock::rfc3339;
use scupper_engine::HumanDuration;
use scupper_policy_spec::PolicySpec;
use scupper_recording::{Directory, ListError, Recording};
use scupper_report::Format;

/// Bytes of a text in a cell.
const CELL: usize = 300;

/// What came of a recording.
pub(super) struct Compared {
    pub file: PathBuf,
    pub node: String,
    pub started: String,
    /// How it ended, if that is recorded.
    pub ended: Option<String>,
    pub result: Result<Comparison, NotPlayable>,
}

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
    let (mut exit, mut all) = (Exit::Done, Vec::new());
    for file in files {
        let recording = match Recording::read(&file) {
            Ok(recording) => recording,
            Err(error) => {
                let _: ExitCode = fail(&error, Exit::Config);
                exit = exit.and(Exit::Config);
                continue;
            }
        };
        let header = &recording.header;
        let result = match RecordedCluster::of(&recording) {
            Err(why) => Err(why),
            Ok(recorded) => match compare(&workbench, &recorded, [&old, &new]).await {
                Ok(comparison) => Ok(comparison),
                Err(error) => return not_loaded(&error),
            },
        };
        all.push(Compared {
            file,
            node: header.request.node.clone(),
            started: rfc3339(header.wall),
            ended: recording.end.as_ref().map(|end| {
                let took = HumanDuration(end.at.since(header.at));
                format!("{} after {took}", end.outcome)
            }),
            result,
        });
    }
    print(&match format {
        Format::Human => markdown(&old.name, [&args.old, &args.new], &all),
        Format::Json => document(&old.name, [&args.old, &args.new], &all).to_string(),
    });
    if all.iter().any(Compared::differs) {
        exit = exit.and(Exit::Found);
    }
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

impl Compared {
    fn differs(&self) -> bool {
        self.result
            .as_ref()
            .is_ok_and(|comparison| !comparison.differences.is_empty())
    }
}

pub(super) fn markdown(policy: &str, modules: [&PathBuf; 2], all: &[Compared]) -> String {
    let played: Vec<_> = all.iter().filter(|one| one.result.is_ok()).collect();
    let differ: Vec<_> = played.iter().filter(|one| one.differs()).collect();
    let mut lines = vec![format!(
        "# Policy {}: {} of {} recorded drains would go differently",
        cell(policy),
        differ.len(),
        played.len()
    )];
    for one in differ {
        let Ok(comparison) = &one.result else { continue };
        lines.push(format!("\n## {}, {}", cell(&one.node), one.started));
        let [old, new] = modules.map(|module| cell(&module.display().to_string()));
        lines.push(format!("| | {old} | {new} |\n|---|---|---|"));
        lines.extend(comparison.differences.iter().map(row));
        let ended = one.ended.as_deref().unwrap_or("without an end");
        let played = cell(&comparison.old_end);
        lines.push(format!(
            "\nRecorded: {}. Played with {old}: {played}.",
            cell(ended)
        ));
    }
    lines.push(String::new());
    lines.extend(remarks(&played));
    for one in all {
        if let Err(why) = &one.result {
            lines.push(format!(
                "- Left out: {}: {why}.",
                cell(&one.file.display().to_string())
            ));
        }
    }
    lines.push(
        "- Not modelled: other policies of these drains, where replacements run, surges, volumes.".to_owned(),
    );
    lines.join("\n")
}

fn row(difference: &DifferentResult) -> String {
    let DifferentResult { what, old, new } = difference;
    format!("| {} | {} | {} |", cell(what), cell(old), cell(new))
}

/// What the policy asked for without an answer: its real answer may have been another one.
fn remarks(played: &[&Compared]) -> Vec<String> {
    let comparisons = played.iter().filter_map(|one| one.result.as_ref().ok());
    let mut unknown: Vec<&String> = comparisons.flat_map(|comparison| &comparison.unknown).collect();
    unknown.sort();
    unknown.dedup();
    let line = |what: &&String| {
        format!(
            "- Not recorded, so the policy was told that there is none: {}.",
            cell(what)
        )
    };
    unknown.iter().map(line).collect()
}

/// Names and texts come from strangers.
fn cell(text: &str) -> String {
    scupper_common::markup::markdown(text, CELL)
}

fn document(policy: &str, modules: [&PathBuf; 2], all: &[Compared]) -> serde_json::Value {
    let [old, new] = modules;
    let difference = |one: &DifferentResult| json!({"what": one.what, "old": one.old, "new": one.new});
    let one = |compared: &Compared| {
        let (file, node, started) = (&compared.file, &compared.node, &compared.started);
        match &compared.result {
            Err(why) => json!({"file": file, "node": node, "started": started, "leftOut": why.to_string()}),
            Ok(comparison) => json!({
                "file": file, "node": node, "started": started,
                "differences": comparison.differences.iter().map(difference).collect::<Vec<_>>(),
                "notRecorded": comparison.unknown, "recordedEnd": compared.ended, "oldEnd": comparison.old_end,
            }),
        }
    };
    json!({"policy": policy, "old": old, "new": new, "drains": all.iter().map(one).collect::<Vec<_>>()})
}
