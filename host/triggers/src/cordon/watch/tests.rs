//! What each change of the node and of the driver brings about.

use super::*;

const NOW: Time = Time::from_millis(1_000_000);

fn door() -> Watch {
    let limits = Limits {
        drain: Some(Duration::from_secs(60)),
        uncordon: Duration::from_secs(30),
    };
    Watch::new("worker-1", limits)
}

fn node() -> NodeView {
    NodeView {
        uid: "u1".to_owned(),
        labelled: true,
        cordoned: false,
        own_cordon: false,
        drained: false,
        left: None,
    }
}

fn cordoned() -> NodeView {
    NodeView {
        cordoned: true,
        ..node()
    }
}

/// What the door demands when the node is like this.
fn demands(door: &mut Watch, node: &NodeView) -> Vec<Demand> {
    door.handle_node(node);
    if door.wants(node) {
        door.begin(node, NOW);
    }
    std::iter::from_fn(|| door.poll_demand()).collect()
}

#[track_caller]
fn begins(door: &mut Watch, node: &NodeView, intent: Intent) -> String {
    let demands = demands(door, node);
    let [Demand::Begin(wish)] = &demands[..] else {
        panic!("not begun: {demands:?}")
    };
    assert_eq!((wish.intent, wish.trigger.as_str()), (intent, TRIGGER));
    door.handle_standing(Standing::Working { id: wish.id.clone() });
    wish.id.clone()
}

#[track_caller]
fn quiet(door: &mut Watch, node: &NodeView) {
    assert_eq!(demands(door, node), []);
}

fn ends(door: &mut Watch, id: &str, outcome: Outcome) {
    door.handle_standing(Standing::Ended {
        id: id.to_owned(),
        outcome,
    });
}

fn expired() -> Outcome {
    Outcome::DeadlineExceeded {
        remaining: Vec::new(),
        held_up: None,
    }
}

#[test]
fn a_cordon_drains_and_an_uncordon_reverses_it() {
    let mut door = door();
    quiet(&mut door, &node());
    let drain = begins(&mut door, &cordoned(), Intent::Drain);
    quiet(&mut door, &cordoned());
    ends(&mut door, &drain, Outcome::Drained);
    // The condition may come into view later.
    quiet(&mut door, &cordoned());
    let drained = NodeView {
        drained: true,
        ..cordoned()
    };
    quiet(&mut door, &drained);
    let open = NodeView {
        drained: true,
        ..node()
    };
    let back = begins(&mut door, &open, Intent::Uncordon);
    ends(&mut door, &back, Outcome::Uncordoned { cordon_kept: false });
    quiet(&mut door, &open);
    quiet(&mut door, &node());
    begins(&mut door, &cordoned(), Intent::Drain);
}

#[test]
fn wishes_have_limits_and_names_of_their_own() {
    let mut door = door();
    let [Demand::Begin(wish)] = &demands(&mut door, &cordoned())[..] else {
        panic!("not begun")
    };
    assert_eq!(wish.name, "cordon-worker-1");
    assert_eq!(wish.deadline, Some(Time::from_millis(1_060_000)));
    assert!(wish.id.contains("u1"));
}

#[test]
fn without_the_label_and_for_our_own_cordon_nothing_happens() {
    for node in [
        NodeView {
            labelled: false,
            ..cordoned()
        },
        NodeView {
            own_cordon: true,
            ..cordoned()
        },
        NodeView {
            drained: true,
            ..cordoned()
        },
        NodeView {
            labelled: false,
            drained: true,
            ..node()
        },
    ] {
        quiet(&mut door(), &node);
    }
}

#[test]
fn an_uncordon_in_mid_drain_takes_the_wish_back() {
    let labelless = NodeView {
        labelled: false,
        ..cordoned()
    };
    for changed in [node(), labelless] {
        let mut door = door();
        let drain = begins(&mut door, &cordoned(), Intent::Drain);
        let demands = demands(&mut door, &changed);
        assert!(
            matches!(&demands[..], [Demand::Cancel { id, .. }] if *id == drain),
            "{demands:?}"
        );
        quiet(&mut door, &changed);
        let reason = String::new();
        ends(&mut door, &drain, Outcome::Cancelled { reason });
        quiet(&mut door, &changed);
    }
}

#[test]
fn a_wish_that_was_taken_back_before_its_turn_is_forgotten() {
    let mut door = door();
    assert_eq!(demands(&mut door, &cordoned()).len(), 1);
    // Another door was quicker, so that this wish waits.
    door.handle_standing(Standing::Working {
        id: "event".to_owned(),
    });
    assert!(matches!(demands(&mut door, &node())[..], [Demand::Cancel { .. }]));
    ends(&mut door, "event", expired());
    begins(&mut door, &cordoned(), Intent::Drain);
}

#[test]
fn a_cordon_is_tried_once() {
    let mut door = door();
    let drain = begins(&mut door, &cordoned(), Intent::Drain);
    ends(&mut door, &drain, expired());
    quiet(&mut door, &cordoned());
    quiet(&mut door, &node());
    begins(&mut door, &cordoned(), Intent::Drain);
}

#[test]
fn one_drain_at_a_time_whoever_asked() {
    let mut door = door();
    door.handle_standing(Standing::Working {
        id: "event".to_owned(),
    });
    quiet(&mut door, &cordoned());
    ends(&mut door, "event", Outcome::Drained);
    quiet(&mut door, &cordoned());
    // Given back by an event: it is that event's uncordon, and the cordon that stays is no new wish.
    door.handle_standing(Standing::Working {
        id: "back".to_owned(),
    });
    quiet(&mut door, &cordoned());
    ends(&mut door, "back", Outcome::Uncordoned { cordon_kept: true });
    quiet(&mut door, &cordoned());
    quiet(&mut door, &node());
    begins(&mut door, &cordoned(), Intent::Drain);
}

#[test]
fn an_event_that_failed_leaves_the_wish_of_the_cordon_standing() {
    let mut door = door();
    door.handle_standing(Standing::Working {
        id: "event".to_owned(),
    });
    quiet(&mut door, &cordoned());
    ends(&mut door, "event", expired());
    begins(&mut door, &cordoned(), Intent::Drain);
}

/// The node as it is looked at once no other process is at work any more.
fn left(intent: Intent, node: NodeView) -> NodeView {
    let left = Left {
        id: "old".to_owned(),
        name: "cordon-worker-1".to_owned(),
        intent,
        deadline: Some(NOW),
    };
    NodeView {
        left: Some(left),
        ..node
    }
}

#[test]
fn what_another_process_was_at_goes_on_while_it_is_asked_for() {
    for (intent, asking) in [(Intent::Drain, cordoned()), (Intent::Uncordon, node())] {
        assert_eq!(begins(&mut door(), &left(intent, asking), intent), "old");
    }
    for (intent, changed) in [(Intent::Drain, node()), (Intent::Uncordon, cordoned())] {
        let demands = demands(&mut door(), &left(intent, changed));
        assert!(
            matches!(&demands[..], [Demand::Lost { id, .. }] if id == "old"),
            "{demands:?}"
        );
    }
}

#[test]
fn what_stands_there_is_of_another_process_only_the_first_time() {
    let mut door = door();
    quiet(&mut door, &node());
    // Of our own by now: it has its wish already.
    let drain = begins(&mut door, &cordoned(), Intent::Drain);
    ends(&mut door, &drain, expired());
    quiet(&mut door, &left(Intent::Drain, cordoned()));
}

#[test]
fn what_another_process_has_drained_meanwhile_is_not_drained_again() {
    let mut door = door();
    // As the watch still shows it, and as it is.
    door.handle_node(&left(Intent::Drain, cordoned()));
    let drained = NodeView {
        drained: true,
        ..cordoned()
    };
    quiet(&mut door, &drained);
    quiet(&mut door, &drained);
}

#[test]
fn an_end_that_was_not_seen_is_no_new_wish() {
    let mut door = door();
    begins(&mut door, &cordoned(), Intent::Drain);
    door.handle_standing(Standing::Working {
        id: "event".to_owned(),
    });
    ends(&mut door, "event", expired());
    quiet(&mut door, &cordoned());
}
