//! Which drain does not begin again after its process has lost the node's Lease.

use scupper_engine::{Condition, Event, Request, Time, Uid};
use scupper_report::fixture;

use super::*;

const NOW: Time = Time::from_millis(60_000);

fn mark() -> Checkpoint {
    fixture::mark("command", Phase::Evicting)
}

fn node(checkpoint: Option<Checkpoint>) -> Node {
    Node {
        checkpoint,
        ..fixture::node(mark())
    }
}

fn another_node() -> Node {
    Node {
        uid: Uid::new("another"),
        ..node(None)
    }
}

/// What an engine knows that has seen this.
fn after(resume: Option<Checkpoint>, events: impl IntoIterator<Item = Event>) -> LastKnown {
    let request = Request {
        id: mark().id,
        ..fixture::request()
    };
    let mut drain = match resume {
        Some(mark) => Drain::resume(NOW, request, mark),
        None => Drain::new(NOW, request),
    };
    let known = LastKnown::default();
    for event in events {
        drain.handle_event(NOW, event);
        known.update(&drain);
    }
    known
}

fn outcome(known: &LastKnown, node: &Node) -> Option<Outcome> {
    let end = known.end_on(&mark().id, Some(node))?;
    Some(end.outcome(&DrainOrders::default(), &node.name))
}

#[test]
fn a_drain_without_a_mark_may_begin() {
    let seen = after(None, [Event::Node(Some(node(None)))]);
    for known in [LastKnown::default(), seen] {
        for node in [node(None), another_node()] {
            assert_eq!(known.end_on(&mark().id, Some(&node)), None);
        }
        assert_eq!(known.mark(), None);
    }
    let other = Checkpoint {
        id: "other".to_owned(),
        ..mark()
    };
    let seen = after(None, [Event::Node(Some(node(Some(other))))]);
    assert_eq!(seen.mark(), None, "the mark of another drain");
}

#[test]
fn a_drain_whose_mark_another_process_has_removed_is_lost() {
    let resumed = LastKnown::default();
    resumed.resume(&mark());
    let seen = after(Some(mark()), [Event::Node(Some(node(Some(mark()))))]);
    let other = Checkpoint {
        id: "other".to_owned(),
        ..mark()
    };
    for known in [resumed, seen] {
        assert_eq!(
            known.end_on(&mark().id, Some(&node(Some(mark())))),
            None,
            "it continues"
        );
        for node in [node(None), node(Some(other.clone()))] {
            let outcome = outcome(&known, &node);
            assert!(matches!(outcome, Some(Outcome::Lost { .. })), "{outcome:?}");
        }
        // The engine reports it: it must know the node for which it has begun.
        assert_eq!(known.end_on(&mark().id, Some(&another_node())), None);
        assert_eq!(known.end_on(&mark().id, None), None);
        assert_eq!(known.mark(), Some(mark()));
        let mut orders = DrainOrders::default();
        orders.cancel("stopped".to_owned());
        let end = known.end_on(&mark().id, Some(&node(None))).unwrap();
        let cancelled = orders.called_off().unwrap();
        assert_eq!(end.outcome(&orders, "worker-1"), cancelled);
        assert!(!end.is_reported);
    }
}

#[test]
fn the_end_that_its_own_engine_knew_stands() {
    let cancel = Event::Cancel {
        reason: "by its own engine".to_owned(),
    };
    let known = after(Some(mark()), [Event::Node(Some(node(Some(mark())))), cancel]);
    let cancelled = outcome(&known, &node(None));
    assert!(
        matches!(&cancelled, Some(Outcome::Cancelled { reason }) if reason == "by its own engine"),
        "{cancelled:?}"
    );
}

/// It was called off before it had a mark, and the Lease was lost while that was written to the node's conditions.
#[test]
fn a_drain_that_has_reported_its_end_does_not_begin_again() {
    let cancel = Event::Cancel {
        reason: "too early".to_owned(),
    };
    let known = after(None, [Event::Node(Some(node(None))), cancel]);
    assert_eq!(known.mark(), None);
    for node in [Some(node(None)), Some(another_node()), None] {
        let end = known.end_on(&mark().id, node.as_ref()).unwrap();
        assert!(end.is_reported);
        assert!(matches!(end.outcome, Some(Outcome::Cancelled { .. })), "{end:?}");
    }
}

/// Under a cordon of others no mark stays, only the condition.
#[test]
fn a_drain_or_an_uncordon_that_was_completed_is_not_lost() {
    let known = LastKnown::default();
    known.resume(&mark());
    let mut drained = node(None);
    drained.conditions.push(Condition {
        kind: "Drained".to_owned(),
        status: "True".to_owned(),
        reason: Node::DRAINED_BY_US.to_owned(),
        message: String::new(),
        since: None,
    });
    assert_eq!(outcome(&known, &drained), Some(Outcome::Drained));
    known.resume(&fixture::mark("command", Phase::Uncordoning));
    let lost = outcome(&known, &node(None));
    assert!(matches!(lost, Some(Outcome::Lost { .. })), "{lost:?}");
    let uncordoned = Node {
        unschedulable: false,
        ..node(None)
    };
    let expected = Outcome::Uncordoned { cordon_kept: false };
    assert_eq!(outcome(&known, &uncordoned), Some(expected));
}
