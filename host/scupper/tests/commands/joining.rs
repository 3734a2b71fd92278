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
fn whoever_joins_a_drain_learns_which_flags_have_no_effect() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let mut first = rig.start(&asks("drain", &["--grace-period", "60"]));
    first.prints("waits    shop/db");
    for (flags, without) in [
        (&["--grace-period", "60"][..], ""),
        (
            &["--force", "--grace-period", "70"],
            "; without effect on it: --force=true --grace-period=70",
        ),
    ] {
        let mut joined = rig.start(&asks("drain", flags));
        joined.prints(&format!("with the flags that it began with{without}\n"));
    }
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
    let cancelled = cancelled.ended();
    assert_eq!(cancelled.code, Some(5));
    let why = ": stopped at the command line";
    assert!(cancelled.stdout.contains(why), "{cancelled:#?}");
    assert!(rig.is_cordoned("worker-1"));
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    assert_eq!(first.ended().code, Some(0));
    let second = second.ended();
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert!(second.stdout.contains("Drained"), "{second:#?}");
    assert!(
        !second.stderr.contains("waiting for the node's Lease"),
        "{second:#?}"
    );
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
        second.stderr().contains(
            "no longer holds the node's Lease; continuing that drain with the flags of this command",
        )
    });
    // One drain is under way, and not a second one that only plans.
    let status = rig.run(&["status", "worker-1"]);
    let taken = "  drain      continued for command drain-worker-1 by ";
    assert!(status.stdout.contains(taken), "{status:#?}");
    assert!(!status.stdout.contains("nothing has changed"), "{status:#?}");
    let overview = rig.run(&["status"]);
    let state = "worker-1  draining  ";
    assert!(overview.stdout.contains(state), "{overview:#?}");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let second = second.ended();
    assert_eq!(second.code, Some(0), "{second:#?}");
    assert_eq!(rig.mark("worker-1").unwrap()["id"], id);
}
