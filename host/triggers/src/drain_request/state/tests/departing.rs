//! Requests that are changed to name another node, which a watch by node shows as deleted.

use super::*;

/// A request that is drained for, as its status says.
fn draining() -> Rig {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    rig.commands();
    assert_eq!(rig.written(), ["a: InProgress=true Draining"]);
    rig
}

#[test]
fn a_request_that_leaves_in_mid_drain_does_not_keep_saying_that_it_is_drained() {
    let mut rig = draining();
    rig.delete("a");
    assert_eq!(rig.commands(), ["cancel a"]);
    assert!(rig.state.is_busy());
    assert_eq!(rig.written(), ["a: InProgress=false NodeChanged"]);
    assert!(
        rig.written().is_empty(),
        "the driver of the other node writes from now on"
    );
}

#[test]
fn a_list_without_it_shows_the_same() {
    let mut rig = draining();
    rig.lists(NAMESPACE, Vec::new());
    rig.commands();
    assert_eq!(rig.written(), ["a: InProgress=false NodeChanged"]);
}

#[test]
fn a_correction_that_fails_is_tried_again_and_waits_for_a_write_that_is_under_way() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    rig.state.advance(rig.now, true);
    let first = rig.state.poll_write(rig.now).unwrap();
    rig.delete("a");
    assert_eq!(rig.state.poll_write(rig.now), None);
    rig.state.handle_written(&first, &Ok(()), rig.now);
    let correction = rig.state.poll_write(rig.now).unwrap();
    assert_eq!(correction.conditions[0].reason, "NodeChanged");
    rig.state.handle_written(&correction, &Err(failed()), rig.now);
    assert_eq!(rig.state.poll_write(rig.now), None);
    rig.passes(Duration::from_secs(1));
    assert_eq!(rig.written(), ["a: InProgress=false NodeChanged"]);
}

/// As by an admission policy, once the driver of the other node has written.
#[test]
fn a_correction_that_is_refused_is_tried_for_ten_seconds() {
    let mut rig = draining();
    rig.delete("a");
    rig.commands();
    let reason = String::new();
    rig.ended("a", Some(Outcome::Cancelled { reason }));
    let begun = rig.now;
    let mut tries = 0;
    while rig.state.is_busy() && tries < 20 {
        if let Some(correction) = rig.state.poll_write(rig.now) {
            tries += 1;
            let refused = UnwrittenConditions::Refused("forbidden".to_owned());
            rig.state.handle_written(&correction, &Err(refused), rig.now);
        }
        rig.passes(Duration::from_secs(1));
    }
    assert!(!rig.state.is_busy(), "after {tries} tries");
    assert_eq!((tries, rig.now.since(begun).as_secs()), (5, 16));
}

#[test]
fn a_request_that_comes_back_is_not_corrected() {
    let mut rig = draining();
    rig.delete("a");
    rig.apply(with("a", "DrainInProgress", "True", "Draining", rig.now));
    rig.commands();
    let written = rig.written();
    assert!(
        written.iter().all(|write| !write.contains("NodeChanged")),
        "{written:?}"
    );
}

#[test]
fn one_that_was_answered_or_never_drained_for_needs_no_correction() {
    let mut rig = draining();
    rig.ended("a", drained());
    rig.written();
    rig.delete("a");
    assert!(rig.written().is_empty());
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.delete("a");
    assert!(rig.written().is_empty());
}

#[test]
fn what_the_driver_of_another_node_wrote_is_not_the_beginning_of_our_drain() {
    let long_ago = Time::from_millis(1);
    let mut moved = with("a", "DrainInProgress", "True", "Draining", long_ago);
    moved.conditions[0].message = "the driver of node worker-2 drains it".to_owned();
    let mut rig = Rig::with(vec![moved]);
    rig.commands();
    rig.started("a");
    assert_eq!(rig.commands(), ["deadline a Some(3600)"]);
    assert_eq!(rig.written(), ["a: InProgress=true Draining"]);
}
