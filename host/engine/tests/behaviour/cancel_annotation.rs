//! A drain that an annotation of its node cancels.

use scupper_engine::{Event, Node, Outcome};

use crate::harness::*;

fn cancelled() -> Outcome {
    Outcome::Cancelled {
        reason: "stopped by scupper cancel".to_owned(),
    }
}

fn cancelling(id: &str, node: Node) -> Event {
    Event::Node(Some(Node {
        cancel: Some(id.to_owned()),
        ..node
    }))
}

#[test]
fn the_id_of_this_drain_cancels_it_and_lifts_our_cordon() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon").does("evict a");
    let mut checkpoint = host.last_checkpoint();
    checkpoint.own_cordon = true;
    let ours = Node {
        unschedulable: true,
        checkpoint: Some(checkpoint),
        resource_version: "150".to_owned(),
        ..node()
    };
    host.handle(cancelling(&request().id, ours.clone()));
    assert_eq!(host.drain.outcome(), Some(&cancelled()));
    // The annotation stays until the command removes it.
    host.handle(cancelling(&request().id, ours))
        .does("uncordon at 150")
        .written("uncordon")
        .ends(&cancelled());
}

#[test]
fn the_id_of_another_drain_cancels_nothing() {
    let mut host = Host::new(request());
    host.begin_with(
        Node {
            cancel: Some("another".to_owned()),
            ..node()
        },
        &[pod("a")],
        &[],
    );
    host.written("cordon").does("evict a");
    host.handle(cancelling("one-more", node()));
    assert_eq!(host.drain.outcome(), None);
}

#[test]
fn a_drain_that_is_cancelled_before_it_sees_the_node_changes_nothing() {
    let mut host = Host::new(request());
    host.handle(cancelling(&request().id, node()))
        .handle(Event::Pods(vec![pod("a")]))
        .handle(Event::Budgets(Vec::new()))
        .does("")
        .ends(&cancelled());
}
