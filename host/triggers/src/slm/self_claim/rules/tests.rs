//! The kubelet's rules, row by row: the observed state on the left, the action on the right.

use std::time::Duration;

use scupper_api::TransitionNodes;
use scupper_contract::FINALIZER;

use super::*;
use crate::RequestedSettings;

const NOW: Time = Time::from_millis(1_000_000_999);

fn rules() -> ClaimRules {
    ClaimRules {
        driver: "drain".to_owned(),
        node: "worker-1".to_owned(),
    }
}

fn versioned(claim: ClaimStatus, finalizers: &[&str]) -> VersionedEvent {
    let driver = (claim != ClaimStatus::Pending).then(|| "drain".to_owned());
    VersionedEvent {
        event: LifecycleEvent {
            uid: "u1".to_owned(),
            name: "e".to_owned(),
            created: None,
            deleting: false,
            transition: "t".to_owned(),
            node: "worker-1".to_owned(),
            claim,
            driver,
            sla: None,
            flags: None,
        },
        version: "7".to_owned(),
        finalizers: finalizers.iter().map(ToString::to_string).collect(),
    }
}

fn pending() -> VersionedEvent {
    versioned(ClaimStatus::Pending, &[FINALIZER])
}

fn claimed() -> VersionedEvent {
    versioned(ClaimStatus::Claimed, &[FINALIZER])
}

fn transition() -> LifecycleTransition {
    LifecycleTransition {
        name: "t".to_owned(),
        driver: "drain".to_owned(),
        start: "s".to_owned(),
        end: "x".to_owned(),
        nodes: TransitionNodes::AllNodes,
        sla: Some(Duration::from_secs(30)),
    }
}

fn snapshot(seen: &VersionedEvent, reason: &str) -> EventSnapshot {
    EventSnapshot {
        event: Some(seen.clone()),
        transition: Some(transition()),
        condition: condition(reason, "t"),
    }
}

fn next(snapshot: &EventSnapshot) -> NextStep {
    rules().next(snapshot, false, NOW)
}

fn finished(seen: &VersionedEvent, status: ClaimStatus) -> NextStep {
    write(seen, EventUpdate::Finish { status, driver: None })
}

#[track_caller]
fn calls(snapshot: &EventSnapshot, method: Method) {
    let NextStep::Do(ClaimAction::Call(call)) = next(snapshot) else {
        panic!("no call: {:?}", next(snapshot))
    };
    let wanted = Call {
        method,
        transition: "t".to_owned(),
        event: "e".to_owned(),
        node: "worker-1".to_owned(),
        start: "s".to_owned(),
        end: "x".to_owned(),
    };
    assert_eq!(call, wanted);
}

#[track_caller]
fn waits_for(snapshot: &EventSnapshot, reports: &str) {
    let NextStep::Wait(why) = next(snapshot) else {
        panic!("not left: {:?}", next(snapshot))
    };
    assert!(why.contains(reports), "`{why}` should tell `{reports}`");
}

// The contract's 6.2.

#[test]
fn claims_after_the_finalizer_with_a_deadline_in_whole_seconds() {
    let bare = versioned(ClaimStatus::Pending, &["example.com/hold"]);
    let finalizers = vec!["example.com/hold".to_owned(), FINALIZER.to_owned()];
    assert_eq!(
        next(&snapshot(&bare, "")),
        write(&bare, EventUpdate::Finalizers(finalizers))
    );

    let claim = |sla| EventUpdate::Claim {
        driver: "drain".to_owned(),
        sla,
    };
    let deadline = Time::from_millis(1_000_030_000);
    assert_eq!(
        next(&snapshot(&pending(), "")),
        write(&pending(), claim(Some(deadline)))
    );
    let endless = EventSnapshot {
        transition: Some(LifecycleTransition {
            sla: None,
            ..transition()
        }),
        ..snapshot(&pending(), "other")
    };
    assert_eq!(next(&endless), write(&pending(), claim(None)));
}

#[test]
fn a_condition_of_an_earlier_event_is_reset_before_the_claim() {
    for stale in ["s", "x"] {
        assert_eq!(
            next(&snapshot(&pending(), stale)),
            reset(&transition()),
            "{stale}"
        );
        let mut of_another = snapshot(&pending(), stale);
        of_another.condition.message = message("other");
        assert_eq!(next(&of_another), reset(&transition()), "{stale}");
    }
    let NextStep::Do(ClaimAction::SetCondition(condition)) = reset(&transition()) else {
        panic!("no write")
    };
    assert!(
        !is_of(&transition(), &condition.reason),
        "neither begun nor ended"
    );
}

#[test]
fn claims_only_its_own_events() {
    let mut missing = snapshot(&pending(), "");
    missing.transition = None;
    waits_for(&missing, "no LifecycleTransition t");
    let mut foreign = snapshot(&pending(), "");
    foreign.transition = Some(LifecycleTransition {
        driver: "other".to_owned(),
        ..transition()
    });
    assert_eq!(next(&foreign), NextStep::NotOurs);
    let mut elsewhere = pending();
    elsewhere.event.node = "worker-2".to_owned();
    assert_eq!(next(&snapshot(&elsewhere, "")), NextStep::NotOurs);
    let unknown = versioned(ClaimStatus::Other("Paused".to_owned()), &[]);
    waits_for(&snapshot(&unknown, ""), "Paused");
    assert_eq!(next(&EventSnapshot::default()), NextStep::Gone);
}

#[test]
fn an_event_that_is_being_deleted_is_claimed_only_if_it_is_held() {
    let mut bare = versioned(ClaimStatus::Pending, &["example.com/hold"]);
    bare.event.deleting = true;
    waits_for(&snapshot(&bare, ""), "deleted");
    let mut held = pending();
    held.event.deleting = true;
    assert!(matches!(
        next(&snapshot(&held, "")),
        NextStep::Do(ClaimAction::Write(_, EventUpdate::Claim { .. }))
    ));
}

// 6.3.

#[test]
fn the_reason_decides_what_comes_next() {
    for (reason, method) in [
        ("", Method::Start),
        ("other", Method::Start),
        ("s", Method::End { expired: false }),
    ] {
        calls(&snapshot(&claimed(), reason), method);
    }
    assert_eq!(
        next(&snapshot(&claimed(), "x")),
        finished(&claimed(), ClaimStatus::Succeeded)
    );
}

#[test]
fn the_reasons_of_another_transition_do_not_count_for_this_one() {
    for reason in ["s", "x"] {
        let mut of_another = snapshot(&claimed(), reason);
        of_another.condition.message = message("other");
        calls(&of_another, Method::Start);
    }
    // The writer is unknown: the reason counts.
    let mut plain = snapshot(&claimed(), "s");
    plain.condition.message = "set by hand".to_owned();
    calls(&plain, Method::End { expired: false });
}

#[test]
fn another_events_end_reason_ends_no_event() {
    for reason in ["s", "x"] {
        let snapshot = snapshot(&claimed(), reason);
        assert_eq!(
            rules().next(&snapshot, true, NOW),
            reset(&transition()),
            "{reason}"
        );
    }
    let fresh = rules().next(&snapshot(&claimed(), "other"), true, NOW);
    assert!(matches!(fresh, NextStep::Do(ClaimAction::Call(_))));
}

#[test]
fn the_finalizer_comes_first_then_the_deadline_then_the_transition() {
    let mut bare = versioned(ClaimStatus::Claimed, &[]);
    bare.event.sla = Some(NOW);
    let mut blind = snapshot(&bare, "x");
    blind.transition = None;
    let held = EventUpdate::Finalizers(vec![FINALIZER.to_owned()]);
    assert_eq!(next(&blind), write(&bare, held));
    bare.finalizers = vec![FINALIZER.to_owned()];
    blind.event = Some(bare.clone());
    assert_eq!(next(&blind), finished(&bare, ClaimStatus::SlaExpired));
    bare.event.sla = Some(Time::from_millis(NOW.as_millis() + 1));
    blind.event = Some(bare);
    waits_for(&blind, "no LifecycleTransition t");
}

#[test]
fn the_deadline_is_checked_before_the_condition() {
    let mut late = claimed();
    late.event.sla = Some(NOW);
    assert_eq!(
        next(&snapshot(&late, "x")),
        finished(&late, ClaimStatus::SlaExpired)
    );
}

#[test]
fn an_event_deleted_without_our_finalizer_is_driven_to_its_end() {
    let mut deleted = versioned(ClaimStatus::Claimed, &["example.com/hold"]);
    deleted.event.deleting = true;
    calls(&snapshot(&deleted, "s"), Method::End { expired: false });
}

#[test]
fn an_event_claimed_by_another_driver_stays_unchanged() {
    for driver in [Some("other".to_owned()), None] {
        for claim in [ClaimStatus::Claimed, ClaimStatus::Failed] {
            let mut foreign = versioned(claim, &[FINALIZER]);
            foreign.event.driver.clone_from(&driver);
            assert_eq!(next(&snapshot(&foreign, "x")), NextStep::NotOurs, "{driver:?}");
        }
    }
}

// 6.4 and 6.5.

#[test]
fn answers_are_followed_as_the_kubelet_does() {
    let rules = rules();
    let condition = TransitionCondition {
        reason: "anything".to_owned(),
        message: "Lifecycle Transition 't'".to_owned(),
    };
    let answer = |reply| rules.answered(&claimed(), &reply);
    assert_eq!(
        answer(Reply::ConditionReason("anything".to_owned())),
        Some(NextStep::Do(ClaimAction::SetCondition(condition)))
    );
    assert_eq!(answer(Reply::Empty), None);
    let failed = EventUpdate::Finish {
        status: ClaimStatus::Failed,
        driver: Some("drain".to_owned()),
    };
    assert_eq!(
        answer(Reply::Error("no".to_owned())),
        Some(write(&claimed(), failed))
    );
}

#[test]
fn an_ended_event_is_released_and_then_deleted() {
    for claim in [
        ClaimStatus::Failed,
        ClaimStatus::SlaExpired,
        ClaimStatus::Succeeded,
    ] {
        let held = versioned(claim.clone(), &["example.com/hold", FINALIZER]);
        let others = EventUpdate::Finalizers(vec!["example.com/hold".to_owned()]);
        assert_eq!(next(&snapshot(&held, "")), write(&held, others));
        let mut bare = versioned(claim, &["example.com/hold"]);
        assert_eq!(
            next(&snapshot(&bare, "")),
            NextStep::Do(ClaimAction::Delete(bare.clone()))
        );
        bare.event.deleting = true;
        waits_for(&snapshot(&bare, ""), "a finalizer that is not ours");
        bare.finalizers.clear();
        assert_eq!(next(&snapshot(&bare, "")), NextStep::Gone);
    }
}

#[test]
fn a_timeout_of_its_own_comes_before_the_transitions_limit_and_without_one_that_limit_counts() {
    let says = |timeout| {
        let flags = RequestedSettings {
            timeout,
            ..RequestedSettings::default()
        };
        let mut event = pending();
        event.event.flags = Some(Ok(flags));
        let claim = next(&snapshot(&event, ""));
        let NextStep::Do(ClaimAction::Write(_, EventUpdate::Claim { sla, .. })) = claim else {
            panic!("no claim: {claim:?}")
        };
        sla
    };
    let limit = NOW + transition().sla.unwrap();
    assert_eq!(says(None), Some(whole_seconds(limit)), "never without a deadline");
    let sla = says(Some(Duration::from_secs(600))).unwrap();
    let least = NOW + Duration::from_secs(615);
    assert!(sla >= least && sla < least + Duration::from_secs(1), "{sla:?}");
    let mut odd = pending();
    odd.event.flags = Some(Err("no".to_owned()));
    let claim = next(&snapshot(&odd, ""));
    assert!(
        matches!(
            claim,
            NextStep::Do(ClaimAction::Write(_, EventUpdate::Claim { sla: Some(_), .. }))
        ),
        "{claim:?}"
    );
}

#[test]
fn a_failed_event_leaves_no_start_in_the_condition() {
    for claim in [ClaimStatus::Failed, ClaimStatus::SlaExpired] {
        let over = versioned(claim.clone(), &[FINALIZER]);
        let released = write(&over, remove_finalizer(&over));
        assert_eq!(next(&snapshot(&over, "s")), reset(&transition()), "{claim:?}");
        for reason in ["", "x", "another"] {
            assert_eq!(next(&snapshot(&over, reason)), released, "{claim:?} {reason}");
        }
        // By now the condition may belong to the next event.
        assert_eq!(rules().next(&snapshot(&over, "s"), true, NOW), released);
        // A released event is not read again.
        let bare = versioned(claim, &[]);
        assert_eq!(
            next(&snapshot(&bare, "s")),
            NextStep::Do(ClaimAction::Delete(bare.clone()))
        );
    }
    let done = versioned(ClaimStatus::Succeeded, &[FINALIZER]);
    assert_eq!(next(&snapshot(&done, "s")), write(&done, remove_finalizer(&done)));
}
