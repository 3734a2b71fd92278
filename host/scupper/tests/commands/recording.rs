//! Recordings of drains: where they are, what is in them, and that no drain depends on them.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use scupper_recording::Recording;

use crate::kubelet_node::{Agent, asks};
use crate::program::program;
use crate::rig::{LIMIT, Rig};

fn path(rig: &Rig, name: &str) -> String {
    rig.dir.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_drain_is_recorded_listed_and_repeated() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(rig.pod("db", "worker-1"));
    // A directory, because it ends with a slash.
    let directory = format!("{}/", path(&rig, "recordings"));
    let drained = rig.run(&["drain", "worker-1", "--record", &directory]);
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    let uncordoned = rig.run(&["uncordon", "worker-1", "--record", &directory]);
    assert_eq!(uncordoned.code, Some(0), "{uncordoned:#?}");
    let listed = rig.run(&["drains", "--recordings", &directory]);
    let rows: Vec<Vec<&str>> = listed
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        ["STARTED", "NODE", "TRIGGER", "TOOK", "END", "NAME"],
        "{listed:#?}"
    );
    assert_eq!(rows.len(), 3, "{listed:#?}");
    assert_eq!((rows[1][2], rows[1][4]), ("command", "Drained"), "{listed:#?}");
    assert_eq!(rows[2][4], "Uncordoned", "{listed:#?}");
    assert!(rows[1][5].ends_with(".drain-worker-1"), "{listed:#?}");
    let none = rig.run(&["drains", "worker-2", "--recordings", &directory]);
    assert_eq!((none.stdout.as_str(), none.code), ("", Some(0)), "{none:#?}");
    assert_eq!(
        none.stderr,
        format!("no drain of worker-2 is recorded in {directory}\n")
    );
    // What `get` writes is the file.
    let file = format!("{directory}{}.jsonl.gz", rows[1][5]);
    let replayed = rig.run(&["replay", &file]);
    assert_eq!(replayed.code, Some(0), "{replayed:#?}");
    assert!(replayed.stdout.contains(": the same: "), "{replayed:#?}");
    assert!(
        replayed.stdout.contains(" commands; Drained after "),
        "{replayed:#?}"
    );
    let missing = rig.run(&["drains", "get", "none", "--recordings", &directory]);
    assert_eq!(missing.code, Some(2), "{missing:#?}");
    assert_eq!(
        missing.stderr,
        "error: there is no recording none; scupper drains lists them\n"
    );
}

#[test]
fn a_report_says_what_a_drain_waited_for() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let file = path(&rig, "drain.gz");
    let drained = rig.run(&["drain", "worker-1", "--timeout", "3s", "--record", &file]);
    assert_eq!(drained.code, Some(6), "{drained:#?}");
    let report = rig.run(&["report", &file]);
    assert_eq!(report.code, Some(0), "{report:#?}");
    let text = &report.stdout;
    assert!(
        text.starts_with("# Drain of worker-1: DeadlineExceeded after "),
        "{text}"
    );
    let row = |pod: &str| {
        let found = text
            .lines()
            .find(|line| line.starts_with(&format!("| shop/{pod} | 1 all | ")));
        found.unwrap_or_else(|| panic!("no {pod} in {text}"))
    };
    assert!(row("db").contains("| still there | "), "{text}");
    assert!(row("db").contains("s disruption budget shop/keep-db"), "{text}");
    assert!(!row("web").contains("still there"), "{text}");
    assert!(text.contains("\nOf "), "{text}");

    let json = rig.run(&["report", &file, "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["waitedFor"][0]["cause"], "disruption budget shop/keep-db");
    let parts = json["waitedFor"].as_array().unwrap().iter();
    let sum: f64 = parts.map(|part| part["seconds"].as_f64().unwrap()).sum();
    assert!(
        (sum - json["seconds"].as_f64().unwrap()).abs() < 0.001,
        "{json:#}"
    );

    let page = path(&rig, "report.html");
    let written = rig.run(&["report", &file, "--html", &page]);
    assert_eq!(written.stderr, format!("{page} is written\n"), "{written:#?}");
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<th scope=\"row\">shop/db</th><td>1 all</td><td class=\"time\">still there</td>"),
        "{page}"
    );
    assert!(
        !page.contains("<script") && !page.contains("http://") && !page.contains("https://"),
        "{page}"
    );
    let nowhere = rig.run(&["report", &file, "--html", "/proc/none/report.html"]);
    assert_eq!(nowhere.code, Some(3), "{nowhere:#?}");
    assert!(
        nowhere
            .stderr
            .starts_with("error: cannot write /proc/none/report.html: "),
        "{nowhere:#?}"
    );
}

#[test]
fn a_driver_records_in_its_state_directory() {
    let mut rig = Rig::new();
    rig.is_recorded = false;
    rig.apply(rig.pod("web", "worker-1"));
    let state = path(&rig, "state");
    let _agent = Agent::with(&rig, false, &["--state-dir", &state]);
    let drained = rig.run(&asks("drain", &[]));
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    let begun = Instant::now();
    let row = loop {
        let listed = rig.run(&["drains", "worker-1", "--state-dir", &state, "-o", "json"]);
        let list: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let row = list["drains"][0].clone();
        // The command returns when the drain has ended, and the driver may still be writing.
        if row["outcome"] == "Drained" {
            break row;
        }
        assert!(begun.elapsed() < LIMIT, "{listed:#?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    // A recording is no text, so it is not read as what a command printed.
    let got = Command::new(program())
        .args([
            "drains",
            "get",
            row["name"].as_str().unwrap(),
            "--state-dir",
            &state,
        ])
        .env_remove("SCUPPER_RECORDINGS")
        .output()
        .unwrap();
    assert!(got.status.success(), "{}", String::from_utf8_lossy(&got.stderr));
    let file = row["file"].as_str().unwrap();
    assert_eq!(got.stdout, fs::read(file).unwrap());
    let recording = Recording::read(file.as_ref()).unwrap();
    assert_eq!(recording.header.request.node, "worker-1");
    scupper_recording::replay(&recording).unwrap();
    assert!(
        file.starts_with(&format!("{state}/recordings/worker-1.")),
        "{file}"
    );
}

#[test]
fn a_killed_drain_and_the_one_that_continues_it_are_both_recorded() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let (first, second) = (path(&rig, "first.gz"), path(&rig, "second.gz"));
    let mut drain = rig.start(&["drain", "worker-1", "--record", &first]);
    drain.prints("gone     shop/web");
    // What was evicted is on the disk a second later.
    let begun = Instant::now();
    let evicts = || {
        let recording = Recording::read(first.as_ref()).ok()?;
        let mut commands = recording.turns.iter().flat_map(|turn| &turn.commands);
        commands.find(|command| command.task.name() == "evict").cloned()
    };
    while evicts().is_none() {
        assert!(begun.elapsed() < LIMIT, "the eviction is not recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    drain.kill();
    let replayed = rig.run(&["replay", &first]);
    assert!(
        replayed.stdout.contains("; the recording ends before the drain"),
        "{replayed:#?}"
    );
    let store = rig.api.store();
    store
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
    let args = ["drain", "worker-1", "--take-over", "--record", &second];
    let taken_over = rig.run(&args);
    assert_eq!(taken_over.code, Some(0), "{taken_over:#?}");
    let recording = Recording::read(second.as_ref()).unwrap();
    assert!(recording.header.checkpoint.is_some());
    scupper_recording::replay(&recording).unwrap();
}

#[test]
fn a_drain_that_cannot_be_recorded_says_so_and_goes_on() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let file = "/proc/none/a.gz";
    let drained = rig.run(&["drain", "worker-1", "--record", file]);
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    let named = format!("{file}: this drain is not recorded: No such file or directory");
    assert!(drained.stderr.contains(&named), "{drained:#?}");
}

#[test]
fn a_file_that_cannot_take_the_recording_is_refused_before_the_drain_begins() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let there = path(&rig, "there.gz");
    fs::write(&there, "of somebody else").unwrap();
    let fresh = path(&rig, "new.gz");
    for (nodes, file, why) in [
        (
            &["worker-1"][..],
            &there,
            "the file exists; name a new one, or a directory, with / at its end".to_owned(),
        ),
        (
            &["worker-1", "worker-2"],
            &fresh,
            format!("several nodes need a directory: {fresh}/"),
        ),
    ] {
        let refused = rig.run(&[&["drain", "--record", file], nodes].concat());
        assert_eq!(refused.code, Some(3), "{refused:#?}");
        assert_eq!(refused.stderr, format!("error: --record {file}: {why}\n"));
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "of somebody else");
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn recordings_that_cannot_be_read_are_named_and_the_others_listed() {
    let rig = Rig::new();
    let directory = format!("{}/", path(&rig, "recordings"));
    let drained = rig.run(&["drain", "worker-1", "--record", &directory]);
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    let damaged = format!("{directory}a.jsonl.gz");
    fs::write(&damaged, "no recording").unwrap();
    let listed = rig.run(&["drains", "--recordings", &directory]);
    assert_eq!(listed.code, Some(3), "{listed:#?}");
    assert_eq!(listed.stdout.lines().count(), 2, "{listed:#?}");
    assert_eq!(
        listed.stderr,
        format!(
            "error: {damaged} is not a recording of a drain: it does not begin with a header\n\
             error: 1 of the recordings cannot be read\n"
        )
    );
}
