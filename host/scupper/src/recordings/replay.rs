//! `scupper replay`: whether the engine of this program does what is recorded.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::args::ReplayArgs;
use crate::exit::Exit;
use crate::output::{Output, fail, print};
use scupper_common::text::one_line;
use scupper_engine::HumanDuration;
use scupper_recording::{Difference, ReadError, Recording, Replayed, replay};
use scupper_report::Format;

/// Bytes of a foreign text in a line.
const TEXT: usize = 400;

/// Replays all, and says of each whether it is the same.
pub(crate) fn run(args: &ReplayArgs, output: Output) -> ExitCode {
    let mut exit = Exit::Done;
    for file in &args.files {
        match of_file(file) {
            Ok((recording, replayed)) => {
                print(&match output.format() {
                    Format::Human => for_people(file, &recording, &replayed),
                    Format::Json => output.document(&document(file, &recording, &replayed)),
                });
                if replayed.is_err() {
                    exit = exit.and(Exit::Found);
                }
            }
            Err(error) => {
                let _: ExitCode = fail(&error, Exit::Config);
                exit = exit.and(Exit::Config);
            }
        }
    }
    exit.into()
}

/// What a replay has shown.
type Shown = Result<Replayed, Box<Difference>>;

fn of_file(file: &Path) -> Result<(Recording, Shown), ReadError> {
    let recording = Recording::read(file)?;
    let replayed = replay(&recording);
    Ok((recording, replayed))
}

fn for_people(file: &Path, recording: &Recording, replayed: &Shown) -> String {
    let file = one_line(&file.to_string_lossy(), TEXT);
    match replayed {
        Ok(Replayed { inputs, commands }) => {
            let end = end_text(recording);
            format!("{file}: the same: {inputs} inputs, {commands} commands; {end}")
        }
        Err(difference) => format!("{file}: differs: {difference}"),
    }
}

fn end_text(recording: &Recording) -> String {
    match (&recording.end, &recording.cut) {
        (Some(end), _) => {
            let took = HumanDuration(end.at.since(recording.header.at));
            format!("{} after {took}", one_line(&end.outcome, TEXT))
        }
        (None, Some(why)) => format!("the recording was cut: {}", one_line(why, TEXT)),
        (None, None) => "the recording ends before the drain".to_owned(),
    }
}

fn document(file: &Path, recording: &Recording, replayed: &Shown) -> Value {
    let end = recording.end.as_ref();
    let replayed = match replayed {
        Ok(Replayed { inputs, commands }) => json!({"same": true, "inputs": inputs, "commands": commands}),
        Err(difference) => json!({
            "same": false,
            "line": difference.line,
            "seconds": difference.at.since(difference.started).as_secs_f64(),
            "difference": difference.to_string(),
        }),
    };
    json!({
        "file": file.to_string_lossy(),
        "node": recording.header.request.node,
        "drain": recording.header.request.name,
        "outcome": end.map(|end| &end.outcome),
        "replay": replayed,
    })
}
