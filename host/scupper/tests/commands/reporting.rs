//! `scupper report`: of files, and of nodes by name; what it says of a forecast, and what it cannot find.

use std::fs;

use serde_json::Value;

use crate::rig::Rig;

fn path(rig: &Rig, name: &str) -> String {
    rig.dir.path().join(name).to_str().unwrap().to_owned()
}

/// Recorded drains of two nodes, the first of them twice, with an uncordon after each.
fn recorded(rig: &Rig) -> String {
    let directory = format!("{}/", path(rig, "recordings"));
    for node in ["worker-1", "worker-2", "worker-1"] {
        rig.apply(rig.pod(&format!("web-{node}"), node));
        for command in ["drain", "uncordon"] {
            let run = rig.run(&[command, node, "--local", "--record", &directory]);
            assert_eq!(run.code, Some(0), "{run:#?}");
        }
    }
    directory
}

fn json(rig: &Rig, args: &[&str]) -> Vec<Value> {
    let run = rig.run(&[args, &["-o", "json"]].concat());
    assert_eq!(run.code, Some(0), "{run:#?}");
    let lines = run.stdout.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn nodes_are_reported_together_each_with_its_newest_drain() {
    let rig = Rig::new();
    let directory = recorded(&rig);
    let listed = json(&rig, &["drains", "worker-1", "--recordings", &directory]);
    let listed = listed[0]["drains"].as_array().unwrap();
    let drains: Vec<_> = listed.iter().filter(|drain| drain["intent"] == "drain").collect();
    assert_eq!((listed.len(), drains.len()), (4, 2), "{listed:#?}");
    let both = ["report", "worker-2", "worker-1", "--recordings", &directory];
    let reports = json(&rig, &both);
    let [second, first] = &reports[..] else {
        panic!("{reports:#?}")
    };
    assert_eq!(second["node"], "worker-2");
    assert_eq!(first["file"], drains[1]["file"]);
    assert_eq!(first["outcome"], "Drained");
    let text = rig.run(&both).stdout;
    assert!(text.starts_with("# 2 drains in "), "{text}");
    assert!(text.contains("; the last to end, worker-1, ended "), "{text}");
    assert!(text.contains(" later. 2 Drained.\n"), "{text}");
    assert!(text.contains("\n| worker-2 | 0s | "), "{text}");
    assert!(text.contains("\n## Drain of worker-1: Drained after "), "{text}");
    let mixed = json(
        &rig,
        &[
            "report",
            first["file"].as_str().unwrap(),
            "worker-2",
            "--recordings",
            &directory,
        ],
    );
    assert_eq!(mixed, [first.clone(), second.clone()]);
    // By the name that `drains` shows: the older one, too.
    let older = drains[0]["name"].as_str().unwrap();
    let named = json(&rig, &["report", older, "--recordings", &directory]);
    assert_eq!(named[0]["file"], drains[0]["file"]);

    let (page, picture) = (path(&rig, "report.html"), path(&rig, "report.svg"));
    let written = rig.run(&[&both[..], &["--html", &page, "--svg", &picture]].concat());
    assert_eq!(
        written.stderr,
        format!("{page} is written\n{picture} is written\n")
    );
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .contains("<a href=\"#drain-1\">worker-1</a>")
    );
    assert!(fs::read_to_string(picture).unwrap().starts_with("<svg "));
}

#[test]
fn what_cannot_be_reported_is_one_error_that_says_where_it_was_looked_for() {
    let mut rig = Rig::new();
    rig.is_recorded = false;
    let directory = recorded(&rig);
    let none = path(&rig, "none.gz");
    for (args, code, error) in [
        (
            &["worker-1", "worker-9", "--recordings", &directory][..],
            2,
            format!("there is no file worker-9, and {directory} has no recording of this name and no recorded drain of a node of this name; scupper drains lists what it has"),
        ),
        (
            &["worker-9"],
            2,
            "there is no file worker-9, and where recordings of nodes are is not known: pass --recordings DIR, or the driver's --state-dir".to_owned(),
        ),
        (
            &["worker-1", &none, "--recordings", &directory],
            3,
            format!("cannot open {none}: No such file or directory (os error 2)"),
        ),
    ] {
        let run = rig.run(&[&["report"], args].concat());
        assert_eq!(run.code, Some(code), "{run:#?}");
        assert_eq!((run.stdout.as_str(), run.stderr), ("", format!("error: {error}\n")));
    }
    let damaged = format!("{directory}a.jsonl.gz");
    fs::write(&damaged, "no recording").unwrap();
    let run = rig.run(&["report", "worker-1", "--recordings", &directory]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(
        run.stderr,
        format!(
            "warning: not searched: {damaged} is not a recording of a drain: it does not begin with a header\n"
        )
    );
}

#[test]
fn of_many_pods_the_text_has_the_slowest_and_wide_has_all() {
    let rig = Rig::new();
    for number in 0..12 {
        rig.apply(rig.pod(&format!("web-{number}"), "worker-1"));
    }
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let file = path(&rig, "drain.gz");
    rig.run(&["drain", "worker-1", "--timeout", "3s", "--record", &file]);
    let rows = |more: &[&str]| {
        let text = rig.run(&[&["report", file.as_str()], more].concat()).stdout;
        let rows = text.lines().filter(|line| line.starts_with("| shop/"));
        (rows.map(str::to_owned).collect::<Vec<_>>(), text)
    };
    let (slowest, text) = rows(&[]);
    assert_eq!(slowest.len(), 10, "{text}");
    assert!(
        slowest[0].starts_with("| shop/db | 1 all | still there | "),
        "{text}"
    );
    assert!(
        text.contains("\nThe slowest 10 of 13 pods (all: -o wide):\n"),
        "{text}"
    );
    let (all, text) = rows(&["-o", "wide"]);
    assert_eq!(all.len(), 13, "{text}");
    assert!(!text.contains("slowest"), "{text}");
}
