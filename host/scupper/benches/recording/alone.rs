//! What a recording costs by itself: the recorder is told again what a recording has, many times. Nothing else runs meanwhile,
//! so the caches are warmer than in a drain.

use std::fs;
use std::path::Path;
use std::time::Duration;

use scupper_recording::{Input, Recording, RecordingTarget};

const TIMES: u32 = 300;

/// The CPU time of one recording, in this process and all its threads.
pub(crate) async fn cpu(file: &Path) -> Duration {
    let recording = Recording::read(file).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let before = crate::driver::cpu(std::process::id());
    for number in 0..TIMES {
        let copy = dir.path().join(format!("{number}.jsonl.gz"));
        write(&recording, &copy).await;
        fs::remove_file(copy).unwrap();
    }
    (crate::driver::cpu(std::process::id()) - before) / TIMES
}

async fn write(recording: &Recording, to: &Path) {
    let mut recorder = RecordingTarget::File(to.to_owned()).begin(|| recording.header.clone());
    for turn in &recording.turns {
        for (at, input) in &turn.inputs {
            match input {
                Input::Event(event) => recorder.event(*at, event),
                Input::Timeout => recorder.timeout(*at),
                Input::Recall { left, own } => recorder.recall(*at, left, own),
            }
        }
        turn.commands.iter().for_each(|command| recorder.command(command));
        recorder.end_turn();
    }
    recorder.end(recording.end.clone().unwrap()).await;
}
