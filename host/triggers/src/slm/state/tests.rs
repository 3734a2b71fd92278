//! The effects of changes of events and of the driver's state.

mod restarts;

use super::*;
use crate::slm::call::{Method, Reply};

const NOW: Time = Time::from_millis(1_000_000);

fn state(resume_point: Option<ResumePoint>) -> SlmState {
    let intents = [("drain", Intent::Drain), ("drain-uncordon", Intent::Uncordon)];
    let identity = Identity {
        driver: "drain".to_owned(),
        node: "worker-1".to_owned(),
        intents: intents.map(|(name, intent)| (name.to_owned(), intent)).into(),
    };
    let mut state = SlmState::new(identity, [("drain".to_owned(), Duration::from_secs(300))].into());
    state.unpause(resume_point);
    state
}

fn claimed(uid: &str, name: &str) -> LifecycleEvent {
    LifecycleEvent {
        uid: uid.to_owned(),
        name: name.to_owned(),
        created: None,
        deleting: false,
        transition: "drain".to_owned(),
        node: "worker-1".to_owned(),
        claim: ClaimStatus::Claimed,
        driver: Some("drain".to_owned()),
        sla: None,
        flags: None,
    }
}

fn resume_point(finished: bool) -> Option<ResumePoint> {
    Some(ResumePoint {
        id: "u1".to_owned(),
        name: "e".to_owned(),
        intent: Intent::Drain,
        deadline: None,
        only_pods: None,
        finished,
    })
}

fn apply(state: &mut SlmState, event: LifecycleEvent) {
    state.handle_change(LifecycleChange::Applied(event), NOW);
}

fn end(state: &mut SlmState, event: &str) -> CallDecision {
    let call = Call {
        method: Method::End { expired: false },
        transition: "drain".to_owned(),
        event: event.to_owned(),
        node: "worker-1".to_owned(),
        start: "s".to_owned(),
        end: "x".to_owned(),
    };
    state.handle_call(&call, NOW)
}

/// The outputs, in short.
fn outputs(state: &mut SlmState) -> Vec<String> {
    let short = |output| match output {
        SlmOutput::Command(DrainCommand::Begin(request)) => format!("begin {}", request.id),
        SlmOutput::Command(DrainCommand::Deadline { id, .. }) => format!("deadline {id}"),
        SlmOutput::Command(DrainCommand::Cancel { id, .. }) => format!("cancel {id}"),
        SlmOutput::Command(DrainCommand::Lost { id, .. }) => format!("lost {id}"),
        SlmOutput::Warn { reason, .. } => reason.to_owned(),
        SlmOutput::Refused { event, .. } => format!("refused {event}"),
    };
    std::iter::from_fn(|| state.poll_output()).map(short).collect()
}

fn working(state: &mut SlmState, id: &str) {
    state.handle_driver_state(DriverState::Running {
        id: id.to_owned(),
        what: String::new(),
    });
}

/// The driver reports the end and is idle.
fn ended(state: &mut SlmState, id: &str, outcome: Outcome) {
    reported(state, id, outcome);
    state.handle_driver_state(DriverState::Idle);
}

fn reported(state: &mut SlmState, id: &str, outcome: Outcome) {
    state.handle_report(DrainReport::Ended {
        id: id.to_owned(),
        outcome: Some(outcome),
        partial: false,
    });
}

#[test]
fn calls_come_any_number_of_times_and_begin_once() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    for _ in 0..3 {
        end(&mut state, "e");
    }
    working(&mut state, "u1");
    end(&mut state, "e");
    assert_eq!(outputs(&mut state), ["begin u1"]);
}

#[test]
fn a_drain_that_the_driver_dropped_is_restarted() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    working(&mut state, "u1");
    state.handle_driver_state(DriverState::Idle);
    end(&mut state, "e");
    assert_eq!(outputs(&mut state), ["begin u1", "begin u1"]);
}

#[test]
fn an_outcome_outlives_the_standing_that_showed_it() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    working(&mut state, "u1");
    ended(&mut state, "u1", Outcome::Drained);
    working(&mut state, "somebody else's");
    assert_eq!(
        end(&mut state, "e"),
        CallDecision::Answer(Reply::ConditionReason("x".to_owned()), None)
    );
    assert_eq!(outputs(&mut state), ["begin u1"]);
}

#[test]
fn two_claimed_events_are_worked_at_one_after_the_other() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    apply(&mut state, claimed("u2", "f"));
    end(&mut state, "e");
    assert_eq!(end(&mut state, "f"), CallDecision::Answer(Reply::Empty, None));
    working(&mut state, "u1");
    end(&mut state, "f");
    assert_eq!(outputs(&mut state), ["begin u1", "LifecycleEventWaits"]);
    ended(&mut state, "u1", Outcome::Drained);
    end(&mut state, "f");
    assert_eq!(outputs(&mut state), ["begin u2"]);
}

#[test]
fn a_drain_whose_end_was_never_reported_does_not_stop_the_next_event() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    working(&mut state, "u1");
    working(&mut state, "other");
    ended(&mut state, "other", Outcome::Drained);
    apply(&mut state, claimed("u2", "f"));
    end(&mut state, "f");
    assert_eq!(outputs(&mut state), ["begin u1", "begin u2"]);
}

/// Another request waited, so the driver was never idle between the two; it may even never have been seen at the first.
#[test]
fn an_outcome_is_answered_although_another_drain_began_at_once() {
    for seen in [true, false] {
        let mut state = state(None);
        apply(&mut state, claimed("u1", "e"));
        end(&mut state, "e");
        if seen {
            working(&mut state, "u1");
        }
        reported(&mut state, "u1", Outcome::Drained);
        working(&mut state, "request");
        let done = CallDecision::Answer(Reply::ConditionReason("x".to_owned()), None);
        assert_eq!(end(&mut state, "e"), done);
        ended(&mut state, "request", Outcome::Drained);
        assert_eq!(end(&mut state, "e"), done);
        assert_eq!(outputs(&mut state), ["begin u1"]);
    }
}

#[test]
fn the_end_of_a_request_that_only_waited_is_not_that_of_the_running_drain() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    working(&mut state, "u1");
    let reason = String::new();
    reported(&mut state, "request", Outcome::Cancelled { reason });
    state.handle_change(LifecycleChange::Deleted("u1".to_owned()), NOW);
    assert_eq!(outputs(&mut state), ["begin u1", "cancel u1"]);
}

#[test]
fn another_triggers_work_is_waited_for() {
    let mut state = state(None);
    working(&mut state, "other");
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    assert_eq!(outputs(&mut state), ["LifecycleEventWaits"]);
    ended(&mut state, "other", Outcome::Drained);
    end(&mut state, "e");
    assert_eq!(outputs(&mut state), ["begin u1"]);
}

#[test]
fn an_event_that_is_over_ends_the_work_once() {
    let withdrawn = |claim| LifecycleEvent {
        claim,
        ..claimed("u1", "e")
    };
    let deleting = || LifecycleEvent {
        deleting: true,
        ..claimed("u1", "e")
    };
    let ends: [(Vec<LifecycleEvent>, &str); 5] = [
        (vec![withdrawn(ClaimStatus::Failed)], "lost u1"),
        (
            vec![
                withdrawn(ClaimStatus::SlaExpired),
                withdrawn(ClaimStatus::SlaExpired),
            ],
            "lost u1",
        ),
        (
            vec![LifecycleEvent {
                deleting: true,
                ..withdrawn(ClaimStatus::Failed)
            }],
            "lost u1",
        ),
        (
            vec![deleting(), deleting(), withdrawn(ClaimStatus::Failed)],
            "cancel u1",
        ),
        (vec![], "cancel u1"),
    ];
    for (changes, expected) in ends {
        let mut state = state(None);
        apply(&mut state, claimed("u1", "e"));
        end(&mut state, "e");
        working(&mut state, "u1");
        assert_eq!(outputs(&mut state), ["begin u1"]);
        for change in changes {
            apply(&mut state, change);
        }
        state.handle_change(LifecycleChange::Deleted("u1".to_owned()), NOW);
        assert_eq!(outputs(&mut state), [expected]);
        assert!(state.is_busy(), "until the driver shows that it has stopped");
        ended(
            &mut state,
            "u1",
            Outcome::Lost {
                reason: String::new(),
            },
        );
        assert!(!state.is_busy());
    }
}

#[test]
fn an_event_missing_from_a_new_list_is_gone() {
    let mut state = state(None);
    state.handle_change(
        LifecycleChange::Listed(vec![claimed("u1", "e"), claimed("u2", "f")]),
        NOW,
    );
    end(&mut state, "e");
    state.handle_change(LifecycleChange::Listed(vec![claimed("u2", "f")]), NOW);
    assert_eq!(outputs(&mut state), ["begin u1", "cancel u1"]);
}

#[test]
fn the_same_name_with_another_uid_is_another_drain_and_waits_for_the_old_one_to_stop() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    working(&mut state, "u1");
    state.handle_change(LifecycleChange::Listed(vec![claimed("u2", "e")]), NOW);
    end(&mut state, "e");
    assert_eq!(
        outputs(&mut state),
        ["begin u1", "cancel u1", "LifecycleEventWaits"]
    );
    ended(
        &mut state,
        "u1",
        Outcome::Cancelled {
            reason: String::new(),
        },
    );
    end(&mut state, "e");
    assert_eq!(outputs(&mut state), ["begin u2"]);
}

#[test]
fn a_checkpoint_is_looked_up_by_name_and_uid() {
    let withdrawn = |claim| LifecycleEvent {
        claim,
        ..claimed("u1", "e")
    };
    let deleting = LifecycleEvent {
        deleting: true,
        ..claimed("u1", "e")
    };
    let rows: [(bool, LifecycleEvent, &[&str]); 8] = [
        (false, claimed("u1", "e"), &["begin u1"]),
        (false, deleting, &["begin u1", "cancel u1"]),
        (false, claimed("u2", "e"), &["lost u1"]),
        (false, withdrawn(ClaimStatus::Failed), &["lost u1"]),
        (false, withdrawn(ClaimStatus::Succeeded), &["lost u1"]),
        (false, withdrawn(ClaimStatus::Pending), &[]),
        (true, claimed("u1", "e"), &[]),
        (true, withdrawn(ClaimStatus::Failed), &[]),
    ];
    for (finished, event, expected) in rows {
        let mut state = state(resume_point(finished));
        state.handle_change(LifecycleChange::Listed(vec![event.clone()]), NOW);
        assert_eq!(outputs(&mut state), expected, "{event:?}");
    }
    let mut state = state(resume_point(false));
    state.handle_change(LifecycleChange::Listed(vec![]), NOW);
    assert_eq!(outputs(&mut state), ["lost u1"]);
}

#[test]
fn only_a_stale_end_is_reported() {
    let succeeded = |event: LifecycleEvent| LifecycleEvent {
        claim: ClaimStatus::Succeeded,
        ..event
    };
    let uncordon = LifecycleEvent {
        transition: "drain-uncordon".to_owned(),
        ..claimed("u1", "e")
    };
    let foreign = LifecycleEvent {
        driver: Some("kssd".to_owned()),
        ..claimed("u1", "e")
    };
    for (event, expected) in [
        (claimed("u1", "e"), &["NotDrained"][..]),
        (uncordon, &["NotUncordoned"]),
        (foreign, &[]),
    ] {
        let mut state = state(None);
        apply(&mut state, event.clone());
        apply(&mut state, succeeded(event.clone()));
        apply(&mut state, succeeded(event));
        assert_eq!(outputs(&mut state), expected);
    }
    // First seen when it was over: a former process may have worked on it.
    let mut fresh = state(None);
    apply(&mut fresh, succeeded(claimed("u1", "e")));
    assert_eq!(outputs(&mut fresh), Vec::<String>::new());
    // A former process finished it.
    let mut resumed = state(resume_point(true));
    apply(&mut resumed, claimed("u1", "e"));
    apply(&mut resumed, succeeded(claimed("u1", "e")));
    assert_eq!(outputs(&mut resumed), Vec::<String>::new());
    // The kubelet called us.
    let mut called = state(None);
    apply(&mut called, claimed("u1", "e"));
    end(&mut called, "e");
    ended(&mut called, "u1", Outcome::Drained);
    apply(&mut called, succeeded(claimed("u1", "e")));
    assert_eq!(outputs(&mut called), ["begin u1"]);
}

#[test]
fn a_deadline_that_comes_late_is_passed_on() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    let sla = Some(Time::from_millis(1_300_000));
    apply(
        &mut state,
        LifecycleEvent {
            sla,
            ..claimed("u1", "e")
        },
    );
    apply(
        &mut state,
        LifecycleEvent {
            sla,
            ..claimed("u1", "e")
        },
    );
    apply(&mut state, claimed("u1", "e"));
    assert_eq!(outputs(&mut state), ["begin u1", "deadline u1", "deadline u1"]);
}

#[test]
fn a_stopping_slm_begins_nothing_and_still_cancels() {
    let mut state = state(None);
    apply(&mut state, claimed("u1", "e"));
    end(&mut state, "e");
    working(&mut state, "u1");
    state.stop();
    apply(&mut state, claimed("u2", "f"));
    assert_eq!(end(&mut state, "e"), CallDecision::Answer(Reply::Empty, None));
    assert_eq!(end(&mut state, "f"), CallDecision::Answer(Reply::Empty, None));
    state.handle_change(LifecycleChange::Deleted("u1".to_owned()), NOW);
    assert_eq!(outputs(&mut state), ["begin u1", "cancel u1"]);
}

#[test]
fn a_paused_slm_begins_nothing_until_it_is_resumed() {
    let rows: [(Vec<LifecycleEvent>, &[&str]); 3] = [
        (vec![claimed("u1", "e")], &["begin u1"]),
        (
            vec![LifecycleEvent {
                deleting: true,
                ..claimed("u1", "e")
            }],
            &["begin u1", "cancel u1"],
        ),
        (vec![], &["lost u1"]),
    ];
    for (events, expected) in rows {
        let mut state = state(None);
        state.pause(true);
        state.handle_change(LifecycleChange::Listed(events.clone()), NOW);
        if !events.is_empty() {
            assert_eq!(end(&mut state, "e"), CallDecision::Answer(Reply::Empty, None));
        }
        assert_eq!(outputs(&mut state), Vec::<String>::new());
        state.unpause(resume_point(false));
        assert_eq!(outputs(&mut state), expected);
    }
    // Unpaused before the watch has shown anything.
    let mut state = state(None);
    state.pause(true);
    state.unpause(resume_point(false));
    assert_eq!(outputs(&mut state), Vec::<String>::new());
    state.handle_change(LifecycleChange::Listed(vec![claimed("u1", "e")]), NOW);
    assert_eq!(outputs(&mut state), ["begin u1"]);
}

/// The kubelet calls another driver as long as there is one.
#[test]
fn a_paused_slm_reports_no_stale_end_that_another_driver_brought_about() {
    let mut state = state(None);
    state.pause(true);
    apply(&mut state, claimed("u1", "e"));
    let succeeded = LifecycleEvent {
        claim: ClaimStatus::Succeeded,
        ..claimed("u1", "e")
    };
    apply(&mut state, succeeded);
    state.unpause(resume_point(true));
    assert_eq!(outputs(&mut state), Vec::<String>::new());
}

#[test]
fn busy_is_an_event_of_ours_that_is_claimed() {
    let mut state = state(None);
    apply(
        &mut state,
        LifecycleEvent {
            driver: Some("kssd".to_owned()),
            ..claimed("u1", "e")
        },
    );
    assert!(!state.is_busy() && !state.has_pending_event());
    apply(
        &mut state,
        LifecycleEvent {
            claim: ClaimStatus::Pending,
            driver: None,
            ..claimed("u2", "f")
        },
    );
    assert!(!state.is_busy() && state.has_pending_event());
    apply(&mut state, claimed("u2", "f"));
    assert!(state.is_busy() && !state.has_pending_event());
}
