//! The status of a node while a drain is blocked and after its process was killed.

use std::time::{Duration, Instant};

use scupper_simulator::api::{Action, Fault, objects};
use serde_json::{Value, json};

use crate::kubelet_node::until;
use crate::rig::{LIMIT, Rig};

fn status(rig: &Rig) -> Value {
    let run = rig.run(&["status", "worker-1", "--output", "json"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// Who does not know which node to ask for asks for none.
#[test]
fn without_nodes_each_node_of_which_there_is_something_to_say_has_a_line() {
    let rig = Rig::new();
    let nothing = rig.run(&["status"]);
    assert_eq!(nothing.code, Some(0), "{nothing:#?}");
    assert!(nothing.stdout.ends_with(": nothing to report\n"), "{nothing:#?}");
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("waits    shop/db");
    let drained = rig.run(&["drain", "worker-2"]);
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    rig.inside(|| {
        rig.api.store().edit("nodes", "", "worker-3", |node| {
            node["spec"]["unschedulable"] = json!(true)
        })
    })
    .unwrap();
    let lines = |stdout: &str| -> Vec<String> { stdout.lines().map(str::to_owned).collect() };
    let begun = Instant::now();
    loop {
        let shown = lines(&rig.run(&["status"]).stdout);
        let is = |row: usize, words: &[&str]| words.iter().all(|word| shown[row].contains(word));
        if is(
            1,
            &[
                "worker-1  draining",
                "command drain-worker-1; 1 pod to go",
                ": 1 BudgetExhausted",
            ],
        ) {
            assert!(
                is(2, &["worker-2  drained", "drain drain-worker-2: "]),
                "{shown:#?}"
            );
            assert!(is(3, &["worker-3  cordoned", "not by Scupper"]), "{shown:#?}");
            break;
        }
        assert!(begun.elapsed() < LIMIT, "{shown:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    drain.kill();
    let shown = lines(&rig.run(&["status"]).stdout);
    assert!(shown[1].contains("worker-1  abandoned"), "{shown:#?}");
    let watched = rig.run(&["status", "--watch"]);
    assert_eq!(watched.code, Some(3), "{watched:#?}");
    assert!(watched.stderr.contains("--watch: name the nodes"), "{watched:#?}");
}

#[test]
fn a_blocked_drain_names_what_blocks_each_pod() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("held", "worker-1").grace(1).finalizer("example.com/hold"));
    let before = status(&rig);
    assert_eq!(
        (&before["cordon"], &before["drain"]),
        (&json!("none"), &Value::Null)
    );
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("waits    shop/db");
    let late = " after its grace period; finalizers: example.com/hold";
    drain.prints(late);
    let is_late =
        |line: &str| line.contains("waits    shop/held: still terminating ") && line.ends_with(late);
    assert!(drain.stdout().lines().any(is_late), "{}", drain.stdout());
    tells_what_holds(&status(&rig));
    assert_eq!(status(&rig)["lease"]["state"], "held");
    let reported = fresh_status(&rig);
    tells_what_holds(&reported);
    assert_eq!(reported["pods"][0]["source"], "driver", "{reported}");
    assert_eq!(reported["pods"][0]["wave"], "all", "{reported}");
    assert_eq!(reported["driver"]["wave"]["number"], 1, "{reported}");
    drain.kill();
    let reported = status(&rig);
    tells_what_holds(&reported);
    assert_eq!(
        (&reported["lease"]["state"], &reported["driver"]["fresh"]),
        (&json!("left"), &json!(false)),
        "what it said last is not reported as if it were there: {reported}"
    );
    let people = rig.run(&["status", "worker-1"]);
    assert!(
        people.stdout.contains("node worker-1: cordoned by Scupper"),
        "{people:#?}"
    );
    for words in [
        "abandoned: ",
        "has ended; showing the API server's state",
        "next: scupper drain worker-1    # continues it: give the flags and --config that it was begun with; scupper cancel worker-1 undoes it",
    ] {
        assert!(people.stdout.contains(words), "{words}: {people:#?}");
    }
    assert!(
        people.stdout.contains("it needs 1 healthy pod and has 1"),
        "{people:#?}"
    );
}

/// Once the drain has published its status.
fn fresh_status(rig: &Rig) -> Value {
    let begun = Instant::now();
    loop {
        let reported = status(rig);
        if reported["driver"]["fresh"] == true {
            return reported;
        }
        assert!(begun.elapsed() < LIMIT, "nothing is reported: {reported}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A drain that fails leaves its last status behind, and the next successful one removes it.
#[test]
fn status_shows_what_blocked_a_drain_after_its_end() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    assert_eq!(rig.run(&["drain", "worker-1", "--timeout", "2s"]).code, Some(6));
    let reported = status(&rig);
    let ended = reported["driver"]["ended"].as_str().unwrap();
    assert!(ended.starts_with("DeadlineExceeded: "), "{reported}");
    assert_eq!(reported["pods"][0]["reason"], "BudgetExhausted", "{reported}");
    let people = rig.run(&["status", "worker-1"]).stdout;
    assert!(people.contains("  ended      "), "{people}");
    assert!(
        people.contains("next: kubectl -n shop describe pdb keep-db"),
        "{people}"
    );
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
    assert_eq!(rig.run(&["drain", "worker-1"]).code, Some(0));
    assert_eq!(status(&rig)["driver"], Value::Null);
}

#[track_caller]
fn tells_what_holds(reported: &Value) {
    assert_eq!(reported["cordon"], "ours", "{reported}");
    assert_eq!(reported["drain"]["name"], "drain-worker-1", "{reported}");
    assert_eq!(reported["drain"]["trigger"], "command", "{reported}");
    let pods = reported["pods"].as_array().unwrap();
    let reasons: Vec<_> = pods.iter().map(|pod| (&pod["pod"], &pod["reason"])).collect();
    assert_eq!(
        json!(reasons),
        json!([
            ["shop/db", "BudgetExhausted"],
            ["shop/held", "TerminatingPastGrace"]
        ])
    );
}

#[test]
fn status_watch_prints_changes_as_they_happen() {
    let rig = Rig::new();
    let mut watch = rig.start(&["status", "worker-1", "--watch"]);
    watch.prints("node worker-1: takes pods");
    rig.apply(rig.pod("web", "worker-1"));
    watch.prints("1 pod here; -o wide lists them");
    assert_eq!(rig.run(&["drain", "worker-1"]).code, Some(0));
    watch.prints("node worker-1: cordoned by Scupper");
    watch.prints("drain      finished for command drain-worker-1");
    rig.inside(|| rig.api.store().delete("nodes", "", "worker-1"));
    watch.prints("node worker-1 is gone");
    rig.apply(objects::node("worker-1"));
    until("the new one is shown", || {
        let said = watch.stdout();
        let since = said.split_once("node worker-1 is gone");
        since.is_some_and(|(_, said)| said.contains("node worker-1: takes pods"))
    });
    watch.signal(rustix::process::Signal::INT);
    assert_eq!(watch.ended().code, Some(0));
}

#[test]
fn an_unknown_node() {
    let rig = Rig::new();
    let run = rig.run(&["status", "nowhere"]);
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(run.stderr.contains("nowhere"), "{run:#?}");
}

/// Between the question whether it exists and its status.
#[test]
fn a_node_that_goes_at_the_wrong_moment() {
    let rig = Rig::new();
    let slow = Fault::new(Action::Delay(Duration::from_secs(2)));
    rig.api.faults([slow.method("GET").path("/api/v1/nodes")]);
    let status = rig.start(&["status", "worker-1"]);
    until("it asks for the node", || {
        let requests = rig.api.requests().into_iter();
        requests
            .filter(|it| it.path == "/api/v1/nodes/worker-1")
            .any(|it| it.status.is_some())
    });
    rig.inside(|| rig.api.store().delete("nodes", "", "worker-1"));
    let run = status.ended();
    assert_eq!(run.code, Some(4), "{run:#?}");
    assert!(run.stderr.contains("there is no node worker-1"), "{run:#?}");
}
