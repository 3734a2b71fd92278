//! Ctrl-C, SIGTERM, kill -9, and two drains of one node.

use rustix::process::Signal;
use serde_json::json;

use crate::rig::Rig;

#[test]
fn the_first_signal_reverts_everything_in_order() {
    for signal in [Signal::INT, Signal::TERM] {
        let rig = Rig::new();
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let mut drain = rig.start(&["drain", "worker-1", "worker-2"]);
        drain.prints("evict    shop/stuck");
        assert!(rig.is_cordoned("worker-1"));
        drain.signal(signal);
        let run = drain.ended();
        assert_eq!(run.code, Some(5), "{run:#?}");
        assert!(run.stdout.contains("Cancelled"), "{run:#?}");
        // The second node was not started.
        assert!(run.stdout.contains("not done: worker-1, worker-2"), "{run:#?}");
        assert!(!rig.is_cordoned("worker-1") && !rig.is_cordoned("worker-2"));
        assert_eq!(rig.mark("worker-1"), None);
    }
}

#[test]
fn a_cordon_that_was_there_before_stays() {
    let rig = Rig::new();
    rig.apply(scupper_simulator::api::objects::node("worker-4").cordoned());
    rig.apply(rig.pod("stuck", "worker-4").stuck());
    let mut drain = rig.start(&["drain", "worker-4"]);
    drain.prints("evict    shop/stuck");
    drain.signal(Signal::INT);
    assert_eq!(drain.ended().code, Some(5));
    assert!(rig.is_cordoned("worker-4"));
}

#[test]
fn the_second_signal_ends_it_at_once_and_another_process_continues_if_asked_to() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("evict    shop/stuck");
    // Nothing can be reverted while the API server does not answer.
    rig.api.pause();
    drain.signal(Signal::INT);
    drain.signal(Signal::TERM);
    let run = drain.ended();
    rig.api.resume();
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stderr.contains("ended at once"), "{run:#?}");
    continues_only_if_asked(&rig);
}

#[test]
fn a_killed_drain_is_continued() {
    let rig = Rig::new();
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let mut drain = rig.start(&["drain", "worker-1"]);
    drain.prints("evict    shop/stuck");
    drain.kill();
    continues_only_if_asked(&rig);
}

/// Worker-1 has the checkpoint of another process's drain.
#[track_caller]
fn continues_only_if_asked(rig: &Rig) {
    let mark = rig.mark("worker-1").unwrap();
    assert_eq!(mark["own_cordon"], json!(true), "{mark}");
    for args in [
        &["drain", "worker-1"][..],
        &["uncordon", "worker-1"],
        &["uncordon", "worker-1", "--take-over"],
    ] {
        let run = rig.run(args);
        assert_eq!(run.code, Some(5), "{run:#?}");
        assert!(
            run.stderr.contains("another process works on node worker-1"),
            "{run:#?}"
        );
        assert!(run.stderr.contains("--take-over"), "{run:#?}");
    }
    let mut drain = rig.start(&["drain", "worker-1", "--take-over"]);
    drain.prints("command drain-worker-1");
    rig.api.store().delete("pods", "shop", "stuck").unwrap();
    let run = drain.ended();
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.mark("worker-1").unwrap()["id"], mark["id"]);
    assert!(rig.pods().is_empty());
}
