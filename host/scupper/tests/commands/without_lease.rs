//! A terminal's drain on a bare cluster: without the namespace of the Leases it drains without one, and is killed. What the
//! commands say of it agrees.

use serde_json::{Value, json};

use crate::rig::{Rig, Run, Running};

const HOLDER: &str = "scupper.dev/drain-holder";

/// A drain of a cluster that has no place for a Lease.
fn drain() -> (Rig, Running) {
    let rig = Rig::new();
    rig.api.store().delete("namespaces", "", "scupper").unwrap();
    let drain = rig.drain_of_stuck_pod();
    let said = drain.stderr();
    assert!(said.contains("continuing without the node's Lease"), "{said}");
    (rig, drain)
}

/// Its process ran here.
fn killed() -> Rig {
    let (rig, drain) = drain();
    drain.kill();
    rig
}

/// Its process ran on another machine.
fn killed_elsewhere() -> Rig {
    let rig = killed();
    annotate(&rig, &json!("me@laptop__b.4026531836.7.1"));
    rig
}

fn annotate(rig: &Rig, holder: &Value) {
    let edit = |node: &mut Value| node["metadata"]["annotations"][HOLDER] = holder.clone();
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", edit))
        .unwrap();
}

fn holder(rig: &Rig) -> Value {
    rig.node("worker-1")["metadata"]["annotations"][HOLDER].clone()
}

#[track_caller]
fn is_undone(rig: &Rig, run: &Run) {
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!rig.is_cordoned("worker-1"), "{run:#?}");
    let left = (rig.mark("worker-1"), rig.pods(), holder(rig));
    assert_eq!(left, (None, vec!["stuck".to_owned()], Value::Null), "{run:#?}");
}

#[test]
fn status_calls_it_abandoned_and_says_what_continues_and_what_undoes_it() {
    let rig = killed();
    let run = rig.run(&["status", "worker-1"]);
    assert!(
        run.stdout.contains("driver     abandoned: ") && run.stdout.contains(" has ended; showing"),
        "{run:#?}"
    );
    let next = "next: scupper drain worker-1    # continues it: give the flags and --config that it was begun with; scupper cancel worker-1 undoes it";
    assert!(run.stdout.contains(next), "{run:#?}");
    let run = rig.run(&["status"]);
    assert!(run.stdout.contains("worker-1  abandoned"), "{run:#?}");
}

#[test]
fn the_same_command_continues_it() {
    let rig = killed();
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("command drain-worker-1");
    assert!(
        drain.stderr().contains("was abandoned, because "),
        "{}",
        drain.stderr()
    );
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(holder(&rig), Value::Null);
}

#[test]
fn an_uncordon_undoes_it_first() {
    let rig = killed();
    let run = rig.run(&["uncordon", "worker-1"]);
    assert!(run.stderr.contains("was abandoned, because "), "{run:#?}");
    is_undone(&rig, &run);
}

/// Its cordon was there before: an uncordon that may not lift it undoes nothing either.
#[test]
fn under_a_foreign_cordon_an_uncordon_changes_nothing_and_says_so() {
    let rig = Rig::new();
    rig.api.store().delete("namespaces", "", "scupper").unwrap();
    let cordon = |node: &mut Value| node["spec"]["unschedulable"] = json!(true);
    rig.inside(|| rig.api.store().edit("nodes", "", "worker-1", cordon))
        .unwrap();
    rig.drain_of_stuck_pod().kill();
    let mark = rig.mark("worker-1");
    let run = rig.run(&["uncordon", "worker-1"]);
    assert_ne!(run.code, Some(0), "{run:#?}");
    for words in [
        "is gone; to undo it: scupper cancel worker-1",
        "nothing has changed",
    ] {
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
    }
    assert_eq!((rig.mark("worker-1"), mark.is_some()), (mark, true));
    let run = rig.run(&["uncordon", "worker-1", "--force"]);
    is_undone(&rig, &run);
}

#[test]
fn a_cancel_rolls_it_back_at_once() {
    let rig = killed();
    // Another machine would wait half a minute.
    let run = rig.run(&["cancel", "worker-1", "--wait-timeout", "20s"]);
    assert!(run.stderr.contains("has rolled the drain back"), "{run:#?}");
    is_undone(&rig, &run);
}

#[test]
fn while_its_process_runs_every_command_says_so() {
    let (rig, drain) = drain();
    let run = rig.run(&["status", "worker-1"]);
    assert!(!run.stdout.contains("abandoned"), "{run:#?}");
    for command in ["drain", "uncordon"] {
        let run = rig.run(&[command, "worker-1"]);
        assert_eq!(run.code, Some(5), "{run:#?}");
        assert!(
            run.stderr.contains("another process works on node worker-1"),
            "{run:#?}"
        );
    }
    let run = rig.run(&["cancel", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(!run.stderr.contains("rolled the drain back"), "{run:#?}");
    assert_eq!(drain.ended().code, Some(5));
    is_undone(&rig, &run);
}

/// Nothing shows whether a process of another machine still runs.
#[test]
fn of_another_machine_every_command_says_that_it_may_be_abandoned_and_the_same_two_ways_out() {
    let rig = killed_elsewhere();
    let ways = |text: &str| {
        ["scupper cancel worker-1", "--take-over"]
            .iter()
            .all(|way| text.contains(way))
    };
    let run = rig.run(&["status", "worker-1"]);
    assert!(
        run.stdout.contains("so it may be abandoned") && ways(&run.stdout),
        "{run:#?}"
    );
    for command in ["drain", "uncordon"] {
        let run = rig.run(&[command, "worker-1"]);
        assert_eq!(run.code, Some(5), "{run:#?}");
        assert!(
            run.stderr.contains("may be abandoned") && ways(&run.stderr),
            "{run:#?}"
        );
    }
    let run = rig.run(&["cancel", "worker-1"]);
    assert!(run.stderr.contains("has rolled the drain back"), "{run:#?}");
    is_undone(&rig, &run);
}
