//! What changes of events and of the driver's standing lead to.

use super::*;
use crate::slm::claim::{Method, Reply};

const NOW: Time = Time::from_millis(1_000_000);

fn door(resume: Option<Resume>) -> Door {
    let intents = [("drain", Intent::Drain), ("drain-uncordon", Intent::Uncordon)];
    let identity = Identity {
        driver: "drain".to_owned(),
        node: "worker-1".to_owned(),
        intents: intents.map(|(name, intent)| (name.to_owned(), intent)).into(),
    };
    let mut door = Door::new(identity, [("drain".to_owned(), Duration::from_secs(300))].into());
    door.release(resume);
    door
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

fn resume(finished: bool) -> Option<Resume> {
    Some(Resume {
        id: "u1".to_owned(),
        name: "e".to_owned(),
        intent: Intent::Drain,
        finished,
    })
}

fn apply(door: &mut Door, event: LifecycleEvent) {
    door.handle_change(LifecycleChange::Applied(event), NOW);
}

fn end(door: &mut Door, event: &str) -> Verdict {
    let call = Call {
        method: Method::End { expired: false },
        transition: "drain".to_owned(),
        event: event.to_owned(),
        node: "worker-1".to_owned(),
        start: "s".to_owned(),
        end: "x".to_owned(),
    };
    door.handle_call(&call, NOW)
}

/// What was passed on, in short.
fn outputs(door: &mut Door) -> Vec<String> {
    let short = |output| match output {
        Output::Demand(Demand::Begin(wish)) => format!("begin {}", wish.id),
        Output::Demand(Demand::Deadline { id, .. }) => format!("deadline {id}"),
        Output::Demand(Demand::Cancel { id, .. }) => format!("cancel {id}"),
        Output::Demand(Demand::Lost { id, .. }) => format!("lost {id}"),
        Output::Warn { reason, .. } => reason.to_owned(),
        Output::Refused { event, .. } => format!("refused {event}"),
    };
    std::iter::from_fn(|| door.poll_output()).map(short).collect()
}

fn working(door: &mut Door, id: &str) {
    door.handle_standing(Standing::Working { id: id.to_owned() });
}

fn ended(door: &mut Door, id: &str, outcome: Outcome) {
    door.handle_standing(Standing::Ended {
        id: id.to_owned(),
        outcome,
    });
}

#[test]
fn calls_come_any_number_of_times_and_begin_once() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    for _ in 0..3 {
        end(&mut door, "e");
    }
    working(&mut door, "u1");
    end(&mut door, "e");
    assert_eq!(outputs(&mut door), ["begin u1"]);
}

#[test]
fn what_the_driver_dropped_is_begun_again() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    working(&mut door, "u1");
    door.handle_standing(Standing::Idle);
    end(&mut door, "e");
    assert_eq!(outputs(&mut door), ["begin u1", "begin u1"]);
}

#[test]
fn an_outcome_outlives_the_standing_that_showed_it() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    working(&mut door, "u1");
    ended(&mut door, "u1", Outcome::Drained);
    working(&mut door, "somebody else's");
    assert_eq!(
        end(&mut door, "e"),
        Verdict::Answer(Reply::Condition("x".to_owned()), None)
    );
    assert_eq!(outputs(&mut door), ["begin u1"]);
}

#[test]
fn two_claimed_events_are_worked_at_one_after_the_other() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    apply(&mut door, claimed("u2", "f"));
    end(&mut door, "e");
    assert_eq!(end(&mut door, "f"), Verdict::Answer(Reply::Empty, None));
    working(&mut door, "u1");
    end(&mut door, "f");
    assert_eq!(outputs(&mut door), ["begin u1"]);
    ended(&mut door, "u1", Outcome::Drained);
    end(&mut door, "f");
    assert_eq!(outputs(&mut door), ["begin u2"]);
}

#[test]
fn a_standing_that_skips_an_end_does_not_stop_the_next_event() {
    // The driver went on to something else so fast that its end was never seen.
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    working(&mut door, "u1");
    working(&mut door, "other");
    ended(&mut door, "other", Outcome::Drained);
    apply(&mut door, claimed("u2", "f"));
    end(&mut door, "f");
    assert_eq!(outputs(&mut door), ["begin u1", "begin u2"]);
}

#[test]
fn another_doors_work_is_waited_for() {
    let mut door = door(None);
    working(&mut door, "other");
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    assert_eq!(outputs(&mut door), Vec::<String>::new());
    ended(&mut door, "other", Outcome::Drained);
    end(&mut door, "e");
    assert_eq!(outputs(&mut door), ["begin u1"]);
}

#[test]
fn an_event_that_is_over_ends_the_work_once() {
    let over = |claim| LifecycleEvent {
        claim,
        ..claimed("u1", "e")
    };
    let deleting = || LifecycleEvent {
        deleting: true,
        ..claimed("u1", "e")
    };
    let ends: [(Vec<LifecycleEvent>, &str); 5] = [
        (vec![over(ClaimStatus::Failed)], "lost u1"),
        (
            vec![over(ClaimStatus::SlaExpired), over(ClaimStatus::SlaExpired)],
            "lost u1",
        ),
        (
            vec![LifecycleEvent {
                deleting: true,
                ..over(ClaimStatus::Failed)
            }],
            "lost u1",
        ),
        (
            vec![deleting(), deleting(), over(ClaimStatus::Failed)],
            "cancel u1",
        ),
        (vec![], "cancel u1"),
    ];
    for (changes, expected) in ends {
        let mut door = door(None);
        apply(&mut door, claimed("u1", "e"));
        end(&mut door, "e");
        working(&mut door, "u1");
        assert_eq!(outputs(&mut door), ["begin u1"]);
        for change in changes {
            apply(&mut door, change);
        }
        door.handle_change(LifecycleChange::Gone { uid: "u1".to_owned() }, NOW);
        assert_eq!(outputs(&mut door), [expected]);
        assert!(door.is_busy(), "until the driver shows that it has stopped");
        ended(
            &mut door,
            "u1",
            Outcome::Lost {
                reason: String::new(),
            },
        );
        assert!(!door.is_busy());
    }
}

#[test]
fn what_a_new_list_does_not_show_is_gone() {
    let mut door = door(None);
    door.handle_change(
        LifecycleChange::Listed(vec![claimed("u1", "e"), claimed("u2", "f")]),
        NOW,
    );
    end(&mut door, "e");
    door.handle_change(LifecycleChange::Listed(vec![claimed("u2", "f")]), NOW);
    assert_eq!(outputs(&mut door), ["begin u1", "cancel u1"]);
}

#[test]
fn the_same_name_with_another_uid_is_another_drain_and_waits_for_the_old_one_to_stop() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    working(&mut door, "u1");
    door.handle_change(LifecycleChange::Listed(vec![claimed("u2", "e")]), NOW);
    end(&mut door, "e");
    assert_eq!(outputs(&mut door), ["begin u1", "cancel u1"]);
    ended(
        &mut door,
        "u1",
        Outcome::Cancelled {
            reason: String::new(),
        },
    );
    end(&mut door, "e");
    assert_eq!(outputs(&mut door), ["begin u2"]);
}

#[test]
fn a_checkpoint_is_looked_up_by_name_and_uid() {
    let over = |claim| LifecycleEvent {
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
        (false, over(ClaimStatus::Failed), &["lost u1"]),
        (false, over(ClaimStatus::Succeeded), &["lost u1"]),
        (false, over(ClaimStatus::Pending), &[]),
        (true, claimed("u1", "e"), &[]),
        (true, over(ClaimStatus::Failed), &[]),
    ];
    for (finished, event, expected) in rows {
        let mut door = door(resume(finished));
        door.handle_change(LifecycleChange::Listed(vec![event.clone()]), NOW);
        assert_eq!(outputs(&mut door), expected, "{event:?}");
    }
    let mut door = door(resume(false));
    door.handle_change(LifecycleChange::Listed(vec![]), NOW);
    assert_eq!(outputs(&mut door), ["lost u1"]);
}

#[test]
fn a_stale_end_is_told_and_nothing_else_is() {
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
        let mut door = door(None);
        apply(&mut door, event.clone());
        apply(&mut door, succeeded(event.clone()));
        apply(&mut door, succeeded(event));
        assert_eq!(outputs(&mut door), expected);
    }
    // Seen for the first time when it was over: a former process may have worked for it.
    let mut fresh = door(None);
    apply(&mut fresh, succeeded(claimed("u1", "e")));
    assert_eq!(outputs(&mut fresh), Vec::<String>::new());
    // A former process finished it.
    let mut resumed = door(resume(true));
    apply(&mut resumed, claimed("u1", "e"));
    apply(&mut resumed, succeeded(claimed("u1", "e")));
    assert_eq!(outputs(&mut resumed), Vec::<String>::new());
    // We were called.
    let mut called = door(None);
    apply(&mut called, claimed("u1", "e"));
    end(&mut called, "e");
    ended(&mut called, "u1", Outcome::Drained);
    apply(&mut called, succeeded(claimed("u1", "e")));
    assert_eq!(outputs(&mut called), ["begin u1"]);
}

#[test]
fn a_deadline_that_comes_late_is_passed_on() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    let sla = Some(Time::from_millis(1_300_000));
    apply(
        &mut door,
        LifecycleEvent {
            sla,
            ..claimed("u1", "e")
        },
    );
    apply(
        &mut door,
        LifecycleEvent {
            sla,
            ..claimed("u1", "e")
        },
    );
    apply(&mut door, claimed("u1", "e"));
    assert_eq!(outputs(&mut door), ["begin u1", "deadline u1", "deadline u1"]);
}

#[test]
fn a_stopping_door_begins_nothing_and_still_cancels() {
    let mut door = door(None);
    apply(&mut door, claimed("u1", "e"));
    end(&mut door, "e");
    working(&mut door, "u1");
    door.stop();
    apply(&mut door, claimed("u2", "f"));
    assert_eq!(end(&mut door, "e"), Verdict::Answer(Reply::Empty, None));
    assert_eq!(end(&mut door, "f"), Verdict::Answer(Reply::Empty, None));
    door.handle_change(LifecycleChange::Gone { uid: "u1".to_owned() }, NOW);
    assert_eq!(outputs(&mut door), ["begin u1", "cancel u1"]);
}

#[test]
fn a_held_door_begins_nothing_until_it_is_released() {
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
        let mut door = door(None);
        door.hold(true);
        door.handle_change(LifecycleChange::Listed(events.clone()), NOW);
        if !events.is_empty() {
            assert_eq!(end(&mut door, "e"), Verdict::Answer(Reply::Empty, None));
        }
        assert_eq!(outputs(&mut door), Vec::<String>::new());
        door.release(resume(false));
        assert_eq!(outputs(&mut door), expected);
    }
    // Released before the watch has shown anything.
    let mut door = door(None);
    door.hold(true);
    door.release(resume(false));
    assert_eq!(outputs(&mut door), Vec::<String>::new());
    door.handle_change(LifecycleChange::Listed(vec![claimed("u1", "e")]), NOW);
    assert_eq!(outputs(&mut door), ["begin u1"]);
}

/// The kubelet calls another one as long as there is one.
#[test]
fn a_held_door_does_not_wonder_at_an_end_that_another_one_brought_about() {
    let mut door = door(None);
    door.hold(true);
    apply(&mut door, claimed("u1", "e"));
    let succeeded = LifecycleEvent {
        claim: ClaimStatus::Succeeded,
        ..claimed("u1", "e")
    };
    apply(&mut door, succeeded);
    door.release(resume(true));
    assert_eq!(outputs(&mut door), Vec::<String>::new());
}

#[test]
fn busy_is_an_event_of_ours_that_is_claimed() {
    let mut door = door(None);
    apply(
        &mut door,
        LifecycleEvent {
            driver: Some("kssd".to_owned()),
            ..claimed("u1", "e")
        },
    );
    assert!(!door.is_busy() && !door.is_awaited());
    apply(
        &mut door,
        LifecycleEvent {
            claim: ClaimStatus::Pending,
            driver: None,
            ..claimed("u2", "f")
        },
    );
    assert!(!door.is_busy() && door.is_awaited());
    apply(&mut door, claimed("u2", "f"));
    assert!(door.is_busy() && !door.is_awaited());
}
