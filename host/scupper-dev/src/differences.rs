//! What would differ in recorded drains, for people as Markdown and as JSON: one wording for `scupper policy diff` and
//! `scupper replay --policy` or `--config`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::author::{
    Comparison, DifferentResult, Edition, NotPlayable, OfflineRuntime, PolicyLoadError, RecordedCluster,
    Unknown, compare,
};
use scupper::{Exit, fail};
use scupper_common::clock::rfc3339;
use scupper_engine::HumanDuration;
use scupper_recording::Recording;

/// Bytes of a text in a cell.
const CELL: usize = 300;
/// Texts of a kind in a line.
const NAMED: usize = 3;

/// What is compared, in words.
pub(crate) struct Editions {
    /// The title begins with it.
    pub subject: String,
    /// Names the old one in a table, and the new one.
    pub columns: [String; 2],
    /// How the old one was played: `with old.wasm`.
    pub old: String,
    /// What no play of the new one has.
    pub not_played: Vec<String>,
}

/// What came of a recording.
pub(crate) struct Compared {
    pub file: PathBuf,
    pub node: String,
    pub started: String,
    /// How it ended, if that is recorded.
    pub ended: Option<String>,
    /// What happened to the drain, and no play has.
    pub not_played: Vec<String>,
    pub result: Result<Comparison, NotPlayable>,
}

/// Compares all recordings. `editions` makes of a recorded drain the old and the new one; the exit code says what went
/// wrong or whether something differs.
pub(crate) async fn compare_all<E: std::error::Error>(
    workbench: &OfflineRuntime,
    files: Vec<PathBuf>,
    editions: impl Fn(&Path, &RecordedCluster) -> Result<[Edition; 2], E>,
) -> Result<(Vec<Compared>, Exit), PolicyLoadError> {
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
        let (result, not_played) = match RecordedCluster::of(&recording) {
            Err(why) => (Err(why), Vec::new()),
            Ok(recorded) => match editions(&file, &recorded) {
                Ok([old, new]) => {
                    let comparison = compare(workbench, &recorded, [&old, &new]).await?;
                    (Ok(comparison), recorded.not_played)
                }
                Err(error) => {
                    let _: ExitCode = fail(&error, Exit::Config);
                    exit = exit.and(Exit::Config);
                    continue;
                }
            },
        };
        let header = &recording.header;
        all.push(Compared {
            file,
            node: header.request.node.clone(),
            started: rfc3339(header.wall),
            ended: recording.end.as_ref().map(|end| {
                let took = HumanDuration(end.at.since(header.at));
                format!("{} after {took}", end.outcome)
            }),
            not_played,
            result,
        });
    }
    if all.iter().any(Compared::differs) {
        exit = exit.and(Exit::Found);
    }
    Ok((all, exit))
}

impl Compared {
    fn differs(&self) -> bool {
        self.result
            .as_ref()
            .is_ok_and(|comparison| !comparison.differences.is_empty())
    }
}

pub(crate) fn markdown(editions: &Editions, all: &[Compared]) -> String {
    let played: Vec<_> = all.iter().filter(|one| one.result.is_ok()).collect();
    let differ: Vec<_> = played.iter().filter(|one| one.differs()).collect();
    let mut lines = vec![format!(
        "# {}: {} of {} recorded drains would go differently",
        cell(&editions.subject),
        differ.len(),
        played.len()
    )];
    for one in differ {
        let Ok(comparison) = &one.result else { continue };
        lines.push(format!("\n## {}, {}", cell(&one.node), one.started));
        let [old, new] = editions.columns.each_ref().map(|column| cell(column));
        lines.push(format!("| | {old} | {new} |\n|---|---|---|"));
        lines.extend(comparison.differences.iter().map(row));
        let ended = one.ended.as_deref().unwrap_or("without an end");
        lines.push(format!(
            "\nRecorded: {}. Played {}: {}.",
            cell(ended),
            cell(&editions.old),
            cell(&comparison.old_end)
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
    let of_drains: BTreeSet<&String> = all.iter().flat_map(|one| &one.not_played).collect();
    let of_drains = few(of_drains.into_iter().cloned().collect());
    let not_played = editions.not_played.iter().chain(&of_drains);
    let mut not_played: Vec<_> = not_played.map(|text| cell(text)).collect();
    not_played.push("where replacements run, surges, volumes".to_owned());
    lines.push(format!("- Not modelled: {}.", not_played.join("; ")));
    lines.join("\n")
}

fn row(difference: &DifferentResult) -> String {
    let DifferentResult { what, old, new } = difference;
    format!("| {} | {} | {} |", cell(what), cell(old), cell(new))
}

/// What no recording has, and what was assumed instead.
fn remarks(played: &[&Compared]) -> Vec<String> {
    let comparisons = played.iter().filter_map(|one| one.result.as_ref().ok());
    let unknown: BTreeSet<&Unknown> = comparisons.flat_map(|comparison| &comparison.unknown).collect();
    let line = |assumed: &str, what: &str| format!("- Not recorded, {assumed}: {}.", cell(what));
    let (mut lines, mut times) = (Vec::new(), Vec::new());
    for unknown in unknown {
        let what = unknown.to_string();
        match unknown {
            Unknown::Fact(_) => lines.push(line("so the policy was told that there is none", &what)),
            Unknown::Plan(_) => lines.push(line("so it is taken to change nothing", &what)),
            Unknown::Settings(_) => {
                lines.push(line("so it had none; a file for --config can list them", &what))
            }
            Unknown::Time(_) => times.push(what),
        }
    }
    if !times.is_empty() {
        let times = few(times);
        lines.push(line(
            "so times that depend on it are lower bounds",
            &times.join("; "),
        ));
    }
    lines
}

/// The first ones, and how many more there are.
fn few(mut texts: Vec<String>) -> Vec<String> {
    let more = texts.len().saturating_sub(NAMED);
    texts.truncate(NAMED);
    texts.extend((more > 0).then(|| format!("and {more} more")));
    texts
}

/// Names and texts come from strangers.
fn cell(text: &str) -> String {
    scupper_common::markup::markdown(text, CELL)
}

/// What came of each recording.
pub(crate) fn drains(editions: &Editions, all: &[Compared]) -> Value {
    let difference = |one: &DifferentResult| json!({"what": one.what, "old": one.old, "new": one.new});
    let one = |compared: &Compared| {
        let (file, node, started) = (&compared.file, &compared.node, &compared.started);
        match &compared.result {
            Err(why) => json!({"file": file, "node": node, "started": started, "leftOut": why.to_string()}),
            Ok(comparison) => json!({
                "file": file, "node": node, "started": started,
                "differences": comparison.differences.iter().map(difference).collect::<Vec<_>>(),
                "notRecorded": comparison.unknown.iter().map(Unknown::to_string).collect::<Vec<_>>(),
                "notModelled": compared.not_played.iter().chain(&editions.not_played).collect::<Vec<_>>(),
                "recordedEnd": compared.ended, "oldEnd": comparison.old_end,
            }),
        }
    };
    all.iter().map(one).collect()
}
