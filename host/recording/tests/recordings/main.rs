//! Recordings as they are written and read: of thousands of simulated drains, and of files that are not as they should be.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of a test fail by panicking"
)]

mod broken;
mod facts;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use scupper_engine::{Controller, Event, PodPhase, PodRef, Task, Time, Uid};
use scupper_engine_simulation::{Process, Step, processes};
use scupper_recording::{
    Difference, Directory, DrainHistory, End, FORMAT, Header, Limits, ReadError, RecordedPolicy, Recorder,
    Recording, RecordingTarget, Replayed, StartEstimate, replay,
};

fn header(process: &Process) -> Header {
    Header {
        format: FORMAT,
        program: "0.1.0".to_owned(),
        at: process.at,
        wall: process.at,
        request: process.request.clone(),
        checkpoint: process.checkpoint.clone(),
        policies: Vec::new(),
    }
}

/// What a process was told and commanded until its last turn began, if it was killed in that: a recording has whole turns.
fn whole_turns(process: &Process) -> &[Step] {
    let last_input = process
        .steps
        .iter()
        .rposition(|step| !matches!(step, Step::Command(_)));
    match last_input {
        Some(last) if process.is_killed => &process.steps[..last],
        _ => &process.steps,
    }
}

/// Plays what one engine was told and commanded into a recording.
fn record(recorder: &mut Recorder, process: &Process) {
    let mut last_was_command = false;
    for step in whole_turns(process) {
        let is_command = matches!(step, Step::Command(_));
        if last_was_command && !is_command {
            recorder.end_turn();
        }
        last_was_command = is_command;
        match step {
            Step::Recall(left, own) => recorder.recall(process.at, left, own),
            Step::Event(now, event) => recorder.event(*now, event),
            Step::Timeout(now) => recorder.timeout(*now),
            Step::Command(command) => recorder.command(command),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn end(recorder: Recorder) {
    let end = End {
        at: Time::from_millis(0),
        outcome: "Drained".to_owned(),
        text: "drained".to_owned(),
    };
    recorder.end(end).await;
}

fn recorded(process: &Process, file: &Path) -> Recording {
    let mut recorder = RecordingTarget::File(file.to_owned()).begin(|| header(process));
    record(&mut recorder, process);
    end(recorder);
    Recording::read(file).unwrap()
}

fn written(dir: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("written");
    let mut encoder = GzEncoder::new(fs::File::create(&path).unwrap(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    path
}

/// The simulation does not say how and when its drains end.
fn without_end(recording: Recording) -> Recording {
    Recording {
        end: None,
        ..recording
    }
}

#[test]
fn a_policy_that_is_replaced_is_named_and_the_turns_keep_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let (file, process) = (dir.path().join("a"), busy());
    let mut recorder = RecordingTarget::File(file.clone()).begin(|| header(&process));
    recorder.event(process.at, &Event::Pause);
    let replaced = RecordedPolicy {
        name: "slurm".to_owned(),
        digest: "b".repeat(64),
        settings: "0".repeat(64),
    };
    recorder.policies(vec![replaced]);
    recorder.end_turn();
    recorder.event(process.at, &Event::Pause);
    end(recorder);
    let text = MultiGzDecoder::new(fs::File::open(&file).unwrap());
    let lines: Vec<String> = BufReader::new(text).lines().map(Result::unwrap).collect();
    let is_named = |line: &String| line.starts_with(r#"{"policies":[{"name":"slurm","digest":"bb"#);
    assert_eq!(lines.iter().position(is_named), Some(1), "{lines:?}");
    let turns = Recording::read(&file).unwrap().turns;
    assert_eq!(turns.iter().map(|turn| turn.line).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn an_estimate_is_read_as_it_was_written_and_a_replay_does_not_need_it() {
    let dir = tempfile::tempdir().unwrap();
    let (file, process) = (dir.path().join("a"), busy());
    let mut recorder = RecordingTarget::File(file.clone()).begin(|| header(&process));
    let [at, early, likely, late] = [1, 2, 3, 4].map(Time::from_millis);
    let estimate = StartEstimate {
        at,
        early,
        likely,
        late,
    };
    recorder.estimate(estimate);
    record(&mut recorder, &process);
    end(recorder);
    let estimated = Recording::read(&file).unwrap();
    assert_eq!(estimated.estimate, Some(estimate));
    let text = MultiGzDecoder::new(fs::File::open(&file).unwrap());
    let mut lines = BufReader::new(text).lines().map(Result::unwrap);
    let line = r#"{"estimate":{"at":1,"early":2,"likely":3,"late":4}}"#;
    assert!(lines.any(|found| found == line));
    let without = recorded(&process, &dir.path().join("b"));
    assert_eq!(without.estimate, None);
    assert_eq!(
        replay(&without_end(estimated)).unwrap(),
        replay(&without_end(without)).unwrap()
    );
}

/// No time is left out, and none is counted twice.
#[test]
fn what_a_drain_waited_for_is_told_without_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let (mut along_several, mut begun) = (0, 0);
    for (number, process) in (0..200).flat_map(processes).enumerate() {
        let recording = without_end(recorded(&process, &dir.path().join(number.to_string())));
        let last = recording.turns.iter().flat_map(|turn| &turn.inputs).last();
        let ended = last.map_or(recording.header.at, |(at, _)| *at);
        let history = DrainHistory::of(&recording).unwrap();
        assert_eq!((history.started, history.ended), (recording.header.at, ended));
        for pod in &history.pods {
            for pair in pod.waits.windows(2) {
                assert_eq!(pair[0].to, pair[1].from, "{number}: {pod:#?}");
            }
            let until = pod.waits.last().map(|wait| wait.to);
            let until_end = until.is_none_or(|until| until == pod.gone.unwrap_or(ended));
            assert!(until_end, "{number}: {pod:#?}");
        }
        let mut of_waves = 0;
        for wave in &history.waves {
            let pods = history.pods.iter().filter(|pod| pod.wave == Some(wave.number));
            assert!(wave.pods > 0 && wave.pods == pods.clone().count(), "{wave:#?}");
            let is_there = pods.clone().any(|pod| pod.gone.is_none());
            let gone = pods.filter_map(|pod| pod.gone).max();
            assert_eq!(wave.gone, gone.filter(|_| !is_there), "{number}: {wave:#?}");
            let in_time = |begun: Time| begun >= history.started && begun <= ended;
            assert!(wave.begun.is_none_or(in_time), "{number}: {wave:#?}");
            of_waves += wave.pods;
        }
        let in_waves = history.pods.iter().filter(|pod| pod.wave.is_some());
        assert_eq!(of_waves, in_waves.count(), "{number}");
        begun += history.waves.iter().filter(|wave| wave.begun.is_some()).count();
        let mut at = history.started;
        for part in &history.path {
            assert_eq!(part.from, at, "{number}: {:#?}", history.path);
            assert!(part.from < part.to);
            at = part.to;
        }
        assert!(history.path.is_empty() || at == ended, "{number}");
        let pods = history.path.iter().filter_map(|part| part.pod.as_ref());
        let pods: BTreeSet<_> = pods.map(|(pod, ..)| pod.to_string()).collect();
        along_several += usize::from(pods.len() > 1);
    }
    assert!(along_several > 20, "{along_several} paths along several pods");
    assert!(begun > 100, "{begun} waves that have begun");
}

/// A process with many inputs and commands.
fn busy() -> Process {
    let all = (0..20).flat_map(processes);
    all.max_by_key(|process| process.steps.len()).unwrap()
}

#[test]
fn every_simulated_drain_is_written_read_and_replayed_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut commands = 0;
    for seed in 0..400 {
        for (number, process) in processes(seed).iter().enumerate() {
            let file = dir.path().join(format!("{seed}-{number}.jsonl.gz"));
            let recording = without_end(recorded(process, &file));
            assert_eq!(recording.header, header(process), "seed {seed}");
            let replayed =
                replay(&recording).unwrap_or_else(|why| panic!("seed {seed}, process {number}: {why}"));
            let given = whole_turns(process)
                .iter()
                .filter(|step| matches!(step, Step::Command(_)));
            assert_eq!(replayed.commands, given.count(), "seed {seed}");
            commands += replayed.commands;
            fs::remove_file(&file).unwrap();
        }
    }
    assert!(commands > 5_000, "{commands} commands");
}

#[test]
fn the_first_turn_that_differs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut recording = without_end(recorded(&busy(), &dir.path().join("a")));
    let turn = recording
        .turns
        .iter()
        .position(|turn| turn.commands.len() > 1)
        .unwrap();
    let left_out = recording.turns[turn].commands.pop().unwrap();
    let Difference {
        line,
        recorded,
        given,
        ..
    } = *replay(&recording).unwrap_err();
    assert_eq!((line, recorded, given), (turn + 2, None, Some(left_out.clone())));
    let put_twice = recording.turns[turn].commands[0].clone();
    recording.turns[turn].commands.push(put_twice.clone());
    let difference = replay(&recording).unwrap_err();
    assert_eq!(difference.recorded, Some(put_twice));
    assert_eq!(difference.given, Some(left_out));
}

#[test]
fn the_first_field_that_differs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut recording = without_end(recorded(&busy(), &dir.path().join("a")));
    let mut commands = recording.turns.iter_mut().flat_map(|turn| &mut turn.commands);
    let evict = commands.find(|command| command.task.name() == "evict").unwrap();
    let Task::Evict { grace_seconds, .. } = &mut evict.task else {
        panic!("{evict:?}")
    };
    let given = grace_seconds.replace(7_000);
    let given = given.map_or_else(|| "null".to_owned(), |seconds| seconds.to_string());
    let text = replay(&recording).unwrap_err().to_string();
    assert!(
        text.contains(&format!("; at task.Evict.grace_seconds 7000 and {given}")),
        "{text}"
    );
}

#[test]
fn another_end_is_a_difference() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recorded(&busy(), &dir.path().join("a"));
    let text = replay(&recording).unwrap_err().to_string();
    assert!(
        text.contains(": the recording ends with Drained: drained, this engine with "),
        "{text}"
    );
}

#[test]
fn of_turns_in_which_nothing_happens_one_in_a_minute_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (file, process) = (dir.path().join("a"), busy());
    let mut recorder = RecordingTarget::File(file.clone()).begin(|| header(&process));
    for second in 0..=90 {
        recorder.timeout(Time::from_millis(second * 1_000));
        recorder.end_turn();
    }
    recorder.event(Time::from_millis(91_000), &Event::Pause);
    recorder.end_turn();
    recorder.timeout(Time::from_millis(92_000));
    end(recorder);
    let turns = Recording::read(&file).unwrap().turns;
    let times: Vec<_> = turns.iter().map(|turn| turn.inputs[0].0.as_millis()).collect();
    assert_eq!(times, [0, 60_000, 91_000, 92_000]);
}

/// A recording of the directory that begins at this second after 2027-01-15T08:00:00Z.
fn begin_at(directory: &Directory, process: &Process, second: u64) -> Recorder {
    RecordingTarget::Directory(directory.clone()).begin(|| Header {
        wall: Time::from_millis(1_800_000_000_000 + second * 1_000),
        ..header(process)
    })
}

#[test]
fn the_oldest_go_and_the_open_stay() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits {
        number: 3,
        age: Duration::MAX,
        ..Limits::default()
    };
    let directory = Directory::new(dir.path().join("made"), Some(limits));
    let process = busy();
    let begin = |second: u64| begin_at(&directory, &process, second);
    let foreign = [
        "notes.jsonl.gz",
        "other-node.20270115T080000000Z.drain.jsonl.gz",
        "a.txt",
    ];
    let foreign = foreign.map(|name| directory.path().join(name));
    let open = begin(0);
    for second in 1..=6 {
        end(begin(second));
    }
    let (left, unreadable) = directory.list().unwrap();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    let names: Vec<_> = left
        .iter()
        .map(|entry| entry.name.split('.').nth(1).unwrap())
        .collect();
    let expected = [
        "20270115T080000000Z",
        "20270115T080004000Z",
        "20270115T080005000Z",
        "20270115T080006000Z",
    ];
    assert_eq!(names, expected);
    let ended: Vec<_> = left.iter().map(|entry| entry.end.is_some()).collect();
    assert_eq!(ended, [false, true, true, true]);
    // To learn from: not the open one, the newest, and none that is too large.
    let newest = |number, bytes| directory.newest(number, bytes).unwrap();
    let paths: Vec<_> = left[1..].iter().map(|entry| entry.path.clone()).collect();
    assert_eq!(newest(9, u64::MAX), paths);
    assert_eq!(newest(2, u64::MAX), paths[1..]);
    assert!(newest(9, 1).is_empty());
    foreign.iter().for_each(|path| fs::write(path, "").unwrap());
    end(open);
    end(begin(7));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3 + foreign.len());
    assert!(foreign.iter().all(|path| path.exists()));
}

#[test]
fn of_those_that_ended_in_one_tick_of_the_clock_the_first_begun_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits {
        number: 2,
        age: Duration::MAX,
        ..Limits::default()
    };
    let directory = Directory::new(dir.path().to_owned(), Some(limits));
    let process = busy();
    let name = |second: u64| {
        let node = &process.request.node;
        format!("{node}.20270115T08000{second}000Z.drain.jsonl.gz")
    };
    for (second, content) in [(1, "the longer of the two"), (2, "shorter")] {
        let path = dir.path().join(name(second));
        fs::write(&path, content).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1))
            .unwrap();
    }
    end(begin_at(&directory, &process, 3));
    let left = directory.files().unwrap();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0], dir.path().join(name(2)));
}

/// `format-4.jsonl` was recorded by a drain in the demo. Where this fails, the format has changed: give it a new number, and
/// record the file anew.
#[test]
fn the_format_is_as_its_number_says() {
    let text = include_str!("../format-4.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let recording = Recording::read(&written(&dir, text)).unwrap();
    assert_eq!(recording.header.format, FORMAT);
    let Replayed { inputs, commands } = replay(&recording).unwrap();
    assert!(
        inputs > 20 && commands > 5,
        "{inputs} inputs, {commands} commands"
    );
    let again = dir.path().join("again");
    let mut recorder = RecordingTarget::File(again.clone()).begin(|| recording.header.clone());
    let (log, mut facts, mut line) = (recorder.facts(), recording.facts.iter().peekable(), 1);
    for turn in &recording.turns {
        if let Some(learned) = facts.next_if(|_| turn.line > line + 1) {
            log.learned(&learned.policy, || learned.objects.clone());
        }
        line = turn.line;
        for (at, input) in &turn.inputs {
            match input {
                scupper_recording::Input::Event(event) => recorder.event(*at, event),
                scupper_recording::Input::Timeout => recorder.timeout(*at),
                scupper_recording::Input::Recall { left, own } => recorder.recall(*at, left, own),
            }
        }
        turn.commands.iter().for_each(|command| recorder.command(command));
        recorder.end_turn();
    }
    end(recorder);
    let mut now = String::new();
    MultiGzDecoder::new(fs::File::open(&again).unwrap())
        .read_to_string(&mut now)
        .unwrap();
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("{\"end\""));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&now), lines(text));
}
