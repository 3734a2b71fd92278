//! The effect of each change of the node and of the driver.

use super::*;

const NOW: Time = Time::from_millis(1_000_000);

fn state() -> CordonState {
    let limits = CordonLimits {
        drain: Some(Duration::from_secs(60)),
        uncordon: Duration::from_secs(30),
    };
    CordonState::new("worker-1", limits)
}

fn node() -> NodeFacts {
    NodeFacts {
        uid: "u1".to_owned(),
        drains_on_cordon: true,
        undoes_on_uncordon: false,
        cordoned: false,
        own_cordon: false,
        drained: false,
        tried: false,
        to_undo: false,
        resume_point: None,
    }
}

fn cordoned() -> NodeFacts {
    NodeFacts {
        cordoned: true,
        ..node()
    }
}

/// The commands of the trigger for a node in this state.
fn commands(state: &mut CordonState, node: &NodeFacts) -> Vec<DrainCommand> {
    state.handle_node(node);
    if state.wants(node) {
        state.begin(node, NOW);
    }
    std::iter::from_fn(|| state.poll_command()).collect()
}

#[track_caller]
fn begins(state: &mut CordonState, node: &NodeFacts, intent: Intent) -> String {
    let commands = commands(state, node);
    let [DrainCommand::Begin(request)] = &commands[..] else {
        panic!("not begun: {commands:?}")
    };
    assert_eq!((request.intent, request.trigger.as_str()), (intent, TRIGGER));
    state.handle_driver_state(DriverState::Running {
        id: request.id.clone(),
        what: String::new(),
    });
    request.id.clone()
}

#[track_caller]
fn quiet(state: &mut CordonState, node: &NodeFacts) {
    assert_eq!(commands(state, node), []);
}

/// The driver reports the end and is idle.
fn ends(state: &mut CordonState, id: &str, outcome: Outcome) {
    let idle = DriverChange::State(DriverState::Idle);
    state.handle_driver_changes(vec![end_of(id, outcome, false), idle]);
}

fn end_of(id: &str, outcome: Outcome, partial: bool) -> DriverChange {
    DriverChange::Report(DrainReport::Ended {
        id: id.to_owned(),
        outcome: Some(outcome),
        partial,
    })
}

fn works_at(id: &str) -> DriverChange {
    DriverChange::State(DriverState::Running {
        id: id.to_owned(),
        what: String::new(),
    })
}

fn expired() -> Outcome {
    Outcome::DeadlineExceeded {
        remaining: Vec::new(),
        held_up: None,
    }
}

#[test]
fn a_cordon_drains_and_an_uncordon_reverses_it() {
    let mut state = state();
    quiet(&mut state, &node());
    let drain = begins(&mut state, &cordoned(), Intent::Drain);
    quiet(&mut state, &cordoned());
    ends(&mut state, &drain, Outcome::Drained);
    // The condition may become visible later.
    quiet(&mut state, &cordoned());
    let drained = NodeFacts {
        drained: true,
        ..cordoned()
    };
    quiet(&mut state, &drained);
    let open = NodeFacts {
        drained: true,
        ..node()
    };
    let back = begins(&mut state, &open, Intent::Uncordon);
    ends(&mut state, &back, Outcome::Uncordoned { cordon_kept: false });
    quiet(&mut state, &open);
    quiet(&mut state, &node());
    begins(&mut state, &cordoned(), Intent::Drain);
}

/// The node has taken pods since it was drained.
#[test]
fn a_cordon_after_an_uncordon_that_failed_drains_again() {
    let failed = Outcome::PolicyFailed {
        policy: "slurm".to_owned(),
        message: String::new(),
    };
    for outcome in [failed, expired()] {
        let mut state = state();
        let drain = begins(&mut state, &cordoned(), Intent::Drain);
        ends(&mut state, &drain, Outcome::Drained);
        let back = begins(&mut state, &node(), Intent::Uncordon);
        ends(&mut state, &back, outcome);
        // It is tried once.
        quiet(&mut state, &node());
        begins(&mut state, &cordoned(), Intent::Drain);
    }
}

/// On a node that no cordon drains, nothing else would undo what policies did.
#[test]
fn what_an_uncordon_has_not_reversed_the_next_one_reverses() {
    let labelled = |cordoned: bool| NodeFacts {
        drains_on_cordon: false,
        undoes_on_uncordon: true,
        cordoned,
        ..node()
    };
    let mut state = state();
    quiet(&mut state, &labelled(true));
    state.handle_report(DrainReport::Ended {
        id: "of-an-event".to_owned(),
        outcome: Some(Outcome::Drained),
        partial: false,
    });
    let back = begins(&mut state, &labelled(false), Intent::Uncordon);
    let withdrawn = commands(&mut state, &labelled(true));
    assert!(
        matches!(&withdrawn[..], [DrainCommand::Cancel { .. }]),
        "{withdrawn:?}"
    );
    let reason = String::new();
    ends(&mut state, &back, Outcome::Cancelled { reason });
    quiet(&mut state, &labelled(true));
    let back = begins(&mut state, &labelled(false), Intent::Uncordon);
    ends(&mut state, &back, Outcome::Uncordoned { cordon_kept: false });
    quiet(&mut state, &labelled(true));
    quiet(&mut state, &labelled(false));
}

#[test]
fn drain_requests_have_a_deadline_and_a_name() {
    let mut state = state();
    let [DrainCommand::Begin(request)] = &commands(&mut state, &cordoned())[..] else {
        panic!("not begun")
    };
    assert_eq!(request.name, "cordon-worker-1");
    assert_eq!(request.deadline, Some(Time::from_millis(1_060_000)));
    assert!(request.id.contains("u1"));
}

#[test]
fn without_the_label_and_for_our_own_cordon_nothing_happens() {
    for node in [
        NodeFacts {
            drains_on_cordon: false,
            ..cordoned()
        },
        NodeFacts {
            own_cordon: true,
            ..cordoned()
        },
        NodeFacts {
            drained: true,
            ..cordoned()
        },
        NodeFacts {
            drains_on_cordon: false,
            drained: true,
            ..node()
        },
    ] {
        quiet(&mut state(), &node);
    }
}

#[test]
fn an_uncordon_in_mid_drain_withdraws_the_request() {
    let labelless = NodeFacts {
        drains_on_cordon: false,
        ..cordoned()
    };
    for changed in [node(), labelless] {
        let mut state = state();
        let drain = begins(&mut state, &cordoned(), Intent::Drain);
        let commands = commands(&mut state, &changed);
        assert!(
            matches!(&commands[..], [DrainCommand::Cancel { id, .. }] if *id == drain),
            "{commands:?}"
        );
        quiet(&mut state, &changed);
        let reason = String::new();
        ends(&mut state, &drain, Outcome::Cancelled { reason });
        quiet(&mut state, &changed);
    }
}

/// The hooks of the uncordon may take long: they must not return a node to service that is cordoned anew.
#[test]
fn a_cordon_in_mid_uncordon_withdraws_it_and_drains() {
    let reason = String::new();
    for outcome in [
        Outcome::Cancelled { reason },
        // It was over by then.
        Outcome::Uncordoned { cordon_kept: true },
        Outcome::Uncordoned { cordon_kept: false },
    ] {
        let mut state = state();
        let drain = begins(&mut state, &cordoned(), Intent::Drain);
        ends(&mut state, &drain, Outcome::Drained);
        let back = begins(&mut state, &node(), Intent::Uncordon);
        let commands = commands(&mut state, &cordoned());
        assert!(
            matches!(&commands[..], [DrainCommand::Cancel { id, .. }] if *id == back),
            "{commands:?}"
        );
        quiet(&mut state, &cordoned());
        ends(&mut state, &back, outcome);
        begins(&mut state, &cordoned(), Intent::Drain);
    }
}

#[test]
fn a_queued_request_that_was_withdrawn_is_forgotten() {
    let mut state = state();
    assert_eq!(commands(&mut state, &cordoned()).len(), 1);
    // Another trigger was quicker, so this request waits.
    state.handle_driver_changes(vec![works_at("event")]);
    assert!(matches!(
        commands(&mut state, &node())[..],
        [DrainCommand::Cancel { .. }]
    ));
    ends(&mut state, "event", expired());
    begins(&mut state, &cordoned(), Intent::Drain);
}

#[test]
fn a_cordon_is_tried_once() {
    let mut state = state();
    let drain = begins(&mut state, &cordoned(), Intent::Drain);
    ends(&mut state, &drain, expired());
    quiet(&mut state, &cordoned());
    quiet(&mut state, &node());
    begins(&mut state, &cordoned(), Intent::Drain);
}

#[test]
fn a_cordon_that_an_earlier_process_tried_is_not_tried_again() {
    let tried = |cordoned| NodeFacts {
        tried: true,
        cordoned,
        ..node()
    };
    let mut found = state();
    quiet(&mut found, &tried(true));
    quiet(&mut found, &node());
    begins(&mut found, &cordoned(), Intent::Drain);
    // The condition may be older than a cordon that this process has seen.
    let mut seen = state();
    quiet(&mut seen, &tried(false));
    begins(&mut seen, &tried(true), Intent::Drain);
}

#[test]
fn one_drain_at_a_time_whatever_the_trigger() {
    let mut state = state();
    state.handle_driver_changes(vec![works_at("event")]);
    quiet(&mut state, &cordoned());
    ends(&mut state, "event", Outcome::Drained);
    quiet(&mut state, &cordoned());
    // Uncordoned by an event: the uncordon is that event's, and the remaining cordon is not a new request.
    state.handle_driver_changes(vec![works_at("back")]);
    quiet(&mut state, &cordoned());
    ends(&mut state, "back", Outcome::Uncordoned { cordon_kept: true });
    quiet(&mut state, &cordoned());
    quiet(&mut state, &node());
    begins(&mut state, &cordoned(), Intent::Drain);
}

#[test]
fn a_failed_event_keeps_the_request_of_the_cordon() {
    let mut state = state();
    state.handle_driver_changes(vec![works_at("event")]);
    quiet(&mut state, &cordoned());
    ends(&mut state, "event", expired());
    begins(&mut state, &cordoned(), Intent::Drain);
}

/// The node once no other process works on it.
fn resume_point(intent: Intent, node: NodeFacts) -> NodeFacts {
    let resume_point = ResumePoint {
        id: "old".to_owned(),
        name: "cordon-worker-1".to_owned(),
        intent,
        deadline: Some(NOW),
        only_pods: None,
        finished: false,
    };
    NodeFacts {
        resume_point: Some(resume_point),
        ..node
    }
}

#[test]
fn another_processs_drain_continues_while_it_is_requested() {
    for (intent, asking) in [(Intent::Drain, cordoned()), (Intent::Uncordon, node())] {
        assert_eq!(begins(&mut state(), &resume_point(intent, asking), intent), "old");
    }
    for (intent, changed) in [(Intent::Drain, node()), (Intent::Uncordon, cordoned())] {
        let commands = commands(&mut state(), &resume_point(intent, changed));
        assert!(
            matches!(&commands[..], [DrainCommand::Lost { id, .. }] if id == "old"),
            "{commands:?}"
        );
    }
}

#[test]
fn a_resume_point_belongs_to_another_process_only_the_first_time() {
    let mut state = state();
    quiet(&mut state, &node());
    // Our own by now: it has its request already.
    let drain = begins(&mut state, &cordoned(), Intent::Drain);
    ends(&mut state, &drain, expired());
    quiet(&mut state, &resume_point(Intent::Drain, cordoned()));
}

#[test]
fn a_node_drained_by_another_process_is_not_drained_again() {
    let mut state = state();
    // First as the stale watch shows it, then as it is.
    state.handle_node(&resume_point(Intent::Drain, cordoned()));
    let drained = NodeFacts {
        drained: true,
        ..cordoned()
    };
    quiet(&mut state, &drained);
    quiet(&mut state, &drained);
}

#[test]
fn a_missed_end_is_not_a_new_request() {
    let mut state = state();
    begins(&mut state, &cordoned(), Intent::Drain);
    state.handle_driver_changes(vec![works_at("event")]);
    ends(&mut state, "event", expired());
    quiet(&mut state, &cordoned());
}

/// Another request waited, so the driver was never idle between the two drains.
#[test]
fn an_end_counts_although_another_drain_began_at_once() {
    let mut drained = state();
    let uncordoned = Outcome::Uncordoned { cordon_kept: true };
    drained.handle_driver_changes(vec![
        works_at("event"),
        end_of("event", Outcome::Drained, false),
        works_at("request"),
    ]);
    ends(&mut drained, "request", expired());
    quiet(&mut drained, &cordoned());
    drained.handle_driver_changes(vec![
        works_at("back"),
        end_of("back", uncordoned, false),
        works_at("request-2"),
    ]);
    ends(&mut drained, "request-2", expired());
    quiet(&mut drained, &cordoned());
    quiet(&mut drained, &node());
    begins(&mut drained, &cordoned(), Intent::Drain);
}

/// A request of another trigger is withdrawn while it waits.
#[test]
fn the_end_of_a_request_that_only_waited_is_not_that_of_the_running_drain() {
    let mut state = state();
    let drain = begins(&mut state, &cordoned(), Intent::Drain);
    let reason = String::new();
    let withdrawn = end_of("request", Outcome::Cancelled { reason }, false);
    state.handle_driver_changes(vec![withdrawn]);
    let commands = commands(&mut state, &node());
    assert!(
        matches!(&commands[..], [DrainCommand::Cancel { id, .. }] if *id == drain),
        "{commands:?}"
    );
}

#[test]
fn a_drain_of_some_pods_does_not_drain_the_node() {
    let mut state = state();
    state.handle_driver_changes(vec![end_of("request", Outcome::Drained, true)]);
    begins(&mut state, &cordoned(), Intent::Drain);
}

#[test]
fn what_policies_did_for_some_pods_is_undone_at_the_uncordon() {
    let mut state = state();
    state.handle_driver_changes(vec![end_of("request", Outcome::Drained, true)]);
    quiet(&mut state, &node());
    let to_undo = NodeFacts {
        to_undo: true,
        ..node()
    };
    begins(&mut state, &to_undo, Intent::Uncordon);
}

/// As with a quarantine that cordons the node before a DrainRequest names the pods.
#[test]
fn with_the_other_label_a_cordon_drains_nothing_and_an_uncordon_reverses_a_drain() {
    let mut state = state();
    let open = NodeFacts {
        drains_on_cordon: false,
        undoes_on_uncordon: true,
        ..node()
    };
    let cordoned = NodeFacts {
        cordoned: true,
        ..open.clone()
    };
    quiet(&mut state, &open);
    quiet(&mut state, &cordoned);
    // The drain of another trigger.
    ends(&mut state, "request", Outcome::Drained);
    quiet(&mut state, &cordoned);
    begins(&mut state, &open, Intent::Uncordon);
}
