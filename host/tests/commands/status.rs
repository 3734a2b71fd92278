//! Where a node stands, read while a drain is held up and after it was killed.

use serde_json::{Value, json};

use crate::rig::Rig;

fn status(rig: &Rig) -> Value {
    let run = rig.run(&["status", "worker-1", "--output", "json"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn a_drain_that_is_held_up_says_what_holds_each_pod() {
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
    drain.says("waits    shop/db");
    drain.says("it should have ended; finalizers: example.com/hold");
    tells_what_holds(&status(&rig));
    drain.kill();
    tells_what_holds(&status(&rig));
    let people = rig.run(&["status", "worker-1"]);
    assert!(
        people.stdout.contains("node worker-1: cordoned by Scupper"),
        "{people:#?}"
    );
    assert!(
        people.stdout.contains("needs 1 healthy pods and has 1"),
        "{people:#?}"
    );
}

#[track_caller]
fn tells_what_holds(told: &Value) {
    assert_eq!(told["cordon"], "ours", "{told}");
    assert_eq!(told["drain"]["name"], "drain-worker-1", "{told}");
    assert_eq!(told["drain"]["trigger"], "command", "{told}");
    let pods = told["pods"].as_array().unwrap();
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
fn changes_are_told_as_they_come() {
    let rig = Rig::new();
    let mut watch = rig.start(&["status", "worker-1", "--watch"]);
    watch.says("node worker-1: takes pods");
    rig.apply(rig.pod("web", "worker-1"));
    watch.says("1 pod here:");
    assert_eq!(rig.run(&["drain", "worker-1"]).code, Some(0));
    watch.says("node worker-1: cordoned by Scupper");
    watch.says("drain      over for command drain-worker-1");
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
