//! A drain that the node's driver carries out already is followed, not requested again. One of another terminal is waited for.

use rustix::process::Signal;

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{Rig, Running};

const QUEUED: &str = "queued   behind command drain-worker-1: begins when that ends";

/// Its limit is not that of the command that joins.
#[test]
fn whoever_joins_a_drain_sees_its_end() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let mut first = rig.start(&asks("drain", &[]));
    first.prints("waits    shop/db");
    let mut joined = rig.start(&asks("drain", &["--timeout", "1s", "--output", "json"]));
    joined.prints(r#""kind":"joined""#);
    joined.prints(r#""kind":"podWaits""#);
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
    let [first, joined] = [first, joined].map(Running::ended);
    for run in [&first, &joined] {
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains("Drained"), "{run:#?}");
    }
    let next = "the node stays cordoned; to give it back: scupper uncordon worker-1";
    assert!(first.stdout.contains(next), "{first:#?}");
}

#[test]
fn a_second_drain_from_a_terminal_begins_when_the_first_has_ended() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    let mut second = rig.start(&["drain", "worker-1"]);
    second.prints(QUEUED);
    let mut json = rig.start(&["drain", "worker-1", "--local", "-o", "json", "--timeout", "1s"]);
    json.prints(r#""kind":"queued""#);
    let json = json.ended();
    assert_eq!(json.code, Some(6), "its own time is over: {json:#?}");
    let cancelled = rig.start(&["drain", "worker-1"]);
    until("it waits", || cancelled.stdout().contains(QUEUED));
    cancelled.signal(Signal::INT);
    assert_eq!(cancelled.ended().code, Some(5));
    assert!(rig.is_cordoned("worker-1"));
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(first.ended().code, Some(0));
    let second = second.ended();
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert!(second.stdout.contains("Drained"), "{second:#?}");
    assert!(!second.stderr.contains("standing by"), "{second:#?}");
}

#[test]
fn a_second_drain_from_a_terminal_continues_the_first_if_that_is_killed() {
    let rig = Rig::new();
    let first = rig.drain_of_stuck_pod();
    let id = rig.mark("worker-1").unwrap()["id"].clone();
    let mut second = rig.start(&["drain", "worker-1"]);
    second.prints(QUEUED);
    first.kill();
    until("the first is continued", || {
        second
            .stderr()
            .contains("the drain ahead was abandoned: its Lease has expired; continuing it")
    });
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let second = second.ended();
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert_eq!(rig.mark("worker-1").unwrap()["id"], id);
}
