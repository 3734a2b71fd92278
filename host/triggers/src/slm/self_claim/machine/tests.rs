//! Whole lives of events, action by action; which event is worked on, and when.

use scupper_api::{LifecycleTransition, TransitionNodes};
use scupper_contract::FINALIZER;
use scupper_engine::whole_millis;

use super::*;
use crate::slm::call::Method;
use crate::slm::self_claim::api::{EventUpdate, TransitionCondition};

mod keeping;

const START: Time = Time::from_millis(1_000_000_000);

fn after(millis: u64) -> Time {
    START + Duration::from_millis(millis)
}

fn event(name: &str, claim: ClaimStatus) -> LifecycleEvent {
    let driver = (claim != ClaimStatus::Pending).then(|| "drain".to_owned());
    LifecycleEvent {
        uid: format!("uid-{name}"),
        name: name.to_owned(),
        created: Some(START),
        deleting: false,
        transition: "t".to_owned(),
        node: "worker-1".to_owned(),
        claim,
        driver,
        sla: None,
        flags: None,
    }
}

fn versioned(event: &LifecycleEvent, held: bool) -> VersionedEvent {
    VersionedEvent {
        event: event.clone(),
        version: "1".to_owned(),
        finalizers: held.then(|| FINALIZER.to_owned()).into_iter().collect(),
    }
}

fn snapshot(event: &LifecycleEvent, held: bool, reason: &str) -> EventSnapshot {
    EventSnapshot {
        event: Some(versioned(event, held)),
        transition: Some(LifecycleTransition {
            name: "t".to_owned(),
            driver: "drain".to_owned(),
            start: "s".to_owned(),
            end: "x".to_owned(),
            nodes: TransitionNodes::AllNodes,
            sla: None,
        }),
        condition: TransitionCondition {
            reason: reason.to_owned(),
            message: "Lifecycle Transition 't'".to_owned(),
        },
    }
}

fn machine(events: Vec<LifecycleEvent>) -> ClaimMachine {
    let mut machine = ClaimMachine::new("drain", "worker-1");
    machine.handle_claiming(true);
    machine.handle_change(LifecycleChange::Listed(events));
    machine
}

#[track_caller]
fn looks_at(machine: &mut ClaimMachine, name: &str, now: Time) {
    assert_eq!(machine.poll_action(now), Some(ClaimAction::Read(name.to_owned())));
    assert_eq!(machine.poll_action(now), None, "one at a time");
}

#[track_caller]
fn quiet(machine: &mut ClaimMachine, now: Time) {
    assert_eq!(machine.poll_action(now), None);
}

fn unavailable() -> ClaimError {
    ClaimError::Unavailable("no answer".to_owned())
}

/// Brings a claimed event to the idle state between two End calls.
fn at_rest(machine: &mut ClaimMachine, event: &LifecycleEvent, now: Time) {
    looks_at(machine, &event.name, now);
    machine.handle_done(ActionResult::Read(Ok(snapshot(event, true, "s"))), now);
    let called = machine.poll_action(now);
    assert!(
        matches!(&called, Some(ClaimAction::Call(call)) if call.method == Method::End { expired: false })
    );
    machine.handle_done(ActionResult::Answered(Some(Reply::Empty)), now);
    quiet(machine, now);
}

#[test]
fn an_events_whole_life_needs_one_read_before_the_work_and_one_after() {
    let pending = event("e", ClaimStatus::Pending);
    let claimed = event("e", ClaimStatus::Claimed);
    let over = event("e", ClaimStatus::Succeeded);
    let mut machine = machine(vec![pending.clone()]);
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&pending, false, "x"))), START);
    let written = |machine: &mut ClaimMachine, becomes: &LifecycleEvent, held| {
        let Some(ClaimAction::Write(_, change)) = machine.poll_action(START) else {
            panic!("no write")
        };
        machine.handle_done(ActionResult::Written(Ok(versioned(becomes, held))), START);
        change
    };
    let set = |machine: &mut ClaimMachine| {
        let Some(ClaimAction::SetCondition(condition)) = machine.poll_action(START) else {
            panic!("no condition")
        };
        machine.handle_done(ActionResult::Set(Ok(())), START);
        condition.reason
    };
    let called = |machine: &mut ClaimMachine, reply| {
        let Some(ClaimAction::Call(call)) = machine.poll_action(START) else {
            panic!("no call")
        };
        machine.handle_done(ActionResult::Answered(Some(reply)), START);
        call.method
    };
    assert!(matches!(
        written(&mut machine, &pending, true),
        EventUpdate::Finalizers(_)
    ));
    assert_eq!(set(&mut machine), "", "the stale end is reset");
    assert!(matches!(
        written(&mut machine, &claimed, true),
        EventUpdate::Claim { .. }
    ));
    assert_eq!(
        called(&mut machine, Reply::ConditionReason("s".to_owned())),
        Method::Start
    );
    assert_eq!(set(&mut machine), "s");
    assert_eq!(called(&mut machine, Reply::Empty), Method::End { expired: false });
    quiet(&mut machine, after(9_999));
    // The driver's work has ended.
    machine.handle_driver_state(&DriverState::Idle);
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&claimed, true, "s"))), START);
    assert_eq!(
        called(&mut machine, Reply::ConditionReason("x".to_owned())),
        Method::End { expired: false }
    );
    assert_eq!(set(&mut machine), "x");
    assert!(
        matches!(written(&mut machine, &over, true), EventUpdate::Finish { status, .. } if status == ClaimStatus::Succeeded)
    );
    assert!(
        matches!(written(&mut machine, &over, false), EventUpdate::Finalizers(names) if names.is_empty())
    );
    assert!(matches!(machine.poll_action(START), Some(ClaimAction::Delete(_))));
    machine.handle_done(ActionResult::Deleted(Ok(())), START);
    quiet(&mut machine, after(100_000));
    assert_eq!(machine.poll_timeout(START), None);
}

#[test]
fn a_change_during_a_call_is_not_missed() {
    let claimed = event("e", ClaimStatus::Claimed);
    let mut machine = machine(vec![claimed.clone()]);
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&claimed, true, "s"))), START);
    assert!(matches!(machine.poll_action(START), Some(ClaimAction::Call(_))));
    machine.handle_driver_state(&DriverState::Idle);
    machine.handle_done(ActionResult::Answered(Some(Reply::Empty)), START);
    looks_at(&mut machine, "e", START);
}

#[test]
fn an_idle_event_is_read_again_after_ten_seconds_or_at_its_deadline() {
    let mut claimed = event("e", ClaimStatus::Claimed);
    let mut idle = machine(vec![claimed.clone()]);
    at_rest(&mut idle, &claimed, START);
    assert_eq!(idle.poll_timeout(START), Some(after(10_000)));
    looks_at(&mut idle, "e", after(10_000));

    claimed.sla = Some(after(4_000));
    let mut limited = machine(vec![claimed.clone()]);
    at_rest(&mut limited, &claimed, START);
    assert_eq!(limited.poll_timeout(START), Some(after(4_000)));
    looks_at(&mut limited, "e", after(4_000));
    limited.handle_done(
        ActionResult::Read(Ok(snapshot(&claimed, true, "x"))),
        after(4_000),
    );
    let Some(ClaimAction::Write(_, EventUpdate::Finish { status, .. })) = limited.poll_action(after(4_000))
    else {
        panic!("it goes on after its deadline")
    };
    assert_eq!(status, ClaimStatus::SlaExpired);
    // A server that does not answer is not called in a loop because the deadline has passed.
    limited.handle_done(ActionResult::Written(Err(unavailable())), after(4_000));
    quiet(&mut limited, after(4_000));
    assert_eq!(limited.poll_timeout(after(4_000)), Some(after(4_250)));
}

#[test]
fn failures_are_retried_with_backoff_and_reported_once() {
    let pending = event("e", ClaimStatus::Pending);
    let mut machine = machine(vec![pending]);
    let mut now = START;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        looks_at(&mut machine, "e", now);
        machine.handle_done(ActionResult::Read(Err(unavailable())), now);
        let next = machine.poll_timeout(now).unwrap();
        pauses.push(whole_millis(next.since(now)));
        // Changes do not shorten it.
        machine.handle_driver_state(&DriverState::Idle);
        quiet(&mut machine, now);
        now = next;
    }
    assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    let notices: Vec<_> = std::iter::from_fn(|| machine.poll_notice()).collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
}

#[test]
fn progress_in_between_resets_the_backoff() {
    let pending = event("e", ClaimStatus::Pending);
    let mut machine = machine(vec![pending.clone()]);
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Err(unavailable())), START);
    looks_at(&mut machine, "e", after(250));
    machine.handle_done(ActionResult::Read(Ok(snapshot(&pending, false, ""))), after(250));
    assert!(matches!(
        machine.poll_action(after(250)),
        Some(ClaimAction::Write(..))
    ));
    machine.handle_done(ActionResult::Written(Ok(versioned(&pending, true))), after(250));
    assert!(matches!(
        machine.poll_action(after(250)),
        Some(ClaimAction::Write(..))
    ));
    machine.handle_done(ActionResult::Written(Err(unavailable())), after(250));
    assert_eq!(machine.poll_timeout(after(250)), Some(after(500)));
}

#[test]
fn a_conflict_is_read_again() {
    let pending = event("e", ClaimStatus::Pending);
    let mut machine = machine(vec![pending.clone()]);
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&pending, true, ""))), START);
    assert!(matches!(machine.poll_action(START), Some(ClaimAction::Write(..))));
    let conflict = ClaimError::Conflict("changed".to_owned());
    machine.handle_done(ActionResult::Written(Err(conflict)), START);
    looks_at(&mut machine, "e", after(250));
    // Another driver was first.
    let mut taken = event("e", ClaimStatus::Claimed);
    taken.driver = Some("other".to_owned());
    machine.handle_done(ActionResult::Read(Ok(snapshot(&taken, true, ""))), after(250));
    quiet(&mut machine, after(250));
}

#[test]
fn a_condition_that_may_not_be_written_fails_the_event_and_one_that_cannot_is_written_later() {
    let claimed = event("e", ClaimStatus::Claimed);
    for (error, fails) in [
        (ClaimError::Refused("forbidden".to_owned()), true),
        (unavailable(), false),
    ] {
        let mut machine = machine(vec![claimed.clone()]);
        looks_at(&mut machine, "e", START);
        machine.handle_done(ActionResult::Read(Ok(snapshot(&claimed, true, ""))), START);
        assert!(matches!(machine.poll_action(START), Some(ClaimAction::Call(_))));
        machine.handle_done(
            ActionResult::Answered(Some(Reply::ConditionReason("s".to_owned()))),
            START,
        );
        assert!(matches!(
            machine.poll_action(START),
            Some(ClaimAction::SetCondition(_))
        ));
        machine.handle_done(ActionResult::Set(Err(error)), START);
        let next = machine.poll_action(START);
        let failed = matches!(&next, Some(ClaimAction::Write(_, EventUpdate::Finish { status, .. })) if *status == ClaimStatus::Failed);
        assert_eq!(failed, fails, "{next:?}");
    }
}

/// Two minutes of refusals, each pass a read, a call and the refused condition.
#[test]
fn a_condition_that_is_forbidden_fails_the_event_only_when_that_lasts() {
    let claimed = event("e", ClaimStatus::Claimed);
    let mut machine = machine(vec![claimed.clone()]);
    let mut now = START;
    let mut refusals = 0;
    loop {
        looks_at(&mut machine, "e", now);
        machine.handle_done(ActionResult::Read(Ok(snapshot(&claimed, true, ""))), now);
        assert!(matches!(machine.poll_action(now), Some(ClaimAction::Call(_))));
        machine.handle_done(
            ActionResult::Answered(Some(Reply::ConditionReason("s".to_owned()))),
            now,
        );
        assert!(matches!(
            machine.poll_action(now),
            Some(ClaimAction::SetCondition(_))
        ));
        let forbidden = ClaimError::Forbidden("may not patch nodes/status".to_owned());
        machine.handle_done(ActionResult::Set(Err(forbidden)), now);
        refusals += 1;
        let Some(timeout) = machine.poll_timeout(now) else {
            break;
        };
        now = timeout;
    }
    assert_eq!(now.since(START), Settings::FORBIDDEN_TIMEOUT);
    assert!((10..30).contains(&refusals), "{refusals}");
    let next = machine.poll_action(now);
    assert!(
        matches!(&next, Some(ClaimAction::Write(_, EventUpdate::Finish { status, .. })) if *status == ClaimStatus::Failed),
        "{next:?}"
    );
}

#[test]
fn claimed_events_come_first_and_block_the_others() {
    let mut younger = event("a", ClaimStatus::Pending);
    younger.created = Some(after(5));
    let older = event("b", ClaimStatus::Pending);
    let leftover = event("c", ClaimStatus::Failed);
    let claimed = event("d", ClaimStatus::Claimed);
    let mut machine = machine(vec![younger.clone(), older.clone(), leftover, claimed.clone()]);
    at_rest(&mut machine, &claimed, START);
    quiet(&mut machine, after(9_999));
    assert_eq!(
        machine.poll_timeout(START),
        Some(after(10_000)),
        "no other is waited for"
    );
    machine.handle_change(LifecycleChange::Deleted(claimed.uid.clone()));
    looks_at(&mut machine, "b", START);
    machine.handle_change(LifecycleChange::Deleted(older.uid));
    machine.handle_done(ActionResult::Read(Ok(EventSnapshot::default())), START);
    looks_at(&mut machine, "a", START);
    machine.handle_change(LifecycleChange::Deleted(younger.uid));
    machine.handle_done(ActionResult::Read(Ok(EventSnapshot::default())), START);
    looks_at(&mut machine, "c", START);
}

#[test]
fn another_drivers_event_blocks_ours_until_well_after_its_end() {
    let mut foreign = event("f", ClaimStatus::Claimed);
    foreign.driver = Some("other".to_owned());
    foreign.sla = Some(after(1000));
    let pending = event("e", ClaimStatus::Pending);
    let mut machine = machine(vec![foreign, pending]);
    quiet(&mut machine, after(60_999));
    assert_eq!(machine.poll_timeout(START), Some(after(61_000)));
    looks_at(&mut machine, "e", after(61_000));
}

#[test]
fn of_two_claimed_ones_the_second_does_not_end_by_the_end_of_the_first() {
    let first = event("a", ClaimStatus::Claimed);
    let second = event("b", ClaimStatus::Claimed);
    let mut machine = machine(vec![second.clone(), first.clone()]);
    looks_at(&mut machine, "a", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&first, true, "s"))), START);
    assert!(matches!(machine.poll_action(START), Some(ClaimAction::Call(_))));
    machine.handle_done(
        ActionResult::Answered(Some(Reply::ConditionReason("x".to_owned()))),
        START,
    );
    assert!(matches!(
        machine.poll_action(START),
        Some(ClaimAction::SetCondition(_))
    ));
    machine.handle_done(ActionResult::Set(Ok(())), START);
    assert!(matches!(
        machine.poll_action(START),
        Some(ClaimAction::Write(_, EventUpdate::Finish { .. }))
    ));
    machine.handle_change(LifecycleChange::Deleted(first.uid));
    machine.handle_done(ActionResult::Written(Err(unavailable())), START);
    looks_at(&mut machine, "b", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&second, true, "x"))), START);
    let Some(ClaimAction::SetCondition(condition)) = machine.poll_action(START) else {
        panic!("it ended by what another one left")
    };
    assert_eq!(condition.reason, "");
}

#[test]
fn nothing_is_done_before_it_is_our_part_nor_after() {
    let pending = event("e", ClaimStatus::Pending);
    let mut machine = ClaimMachine::new("drain", "worker-1");
    machine.handle_change(LifecycleChange::Listed(vec![pending.clone()]));
    quiet(&mut machine, START);
    assert_eq!(machine.poll_timeout(START), None);
    machine.handle_claiming(true);
    looks_at(&mut machine, "e", START);
    machine.handle_claiming(false);
    // The action in progress has no effect.
    machine.handle_done(ActionResult::Read(Ok(snapshot(&pending, true, ""))), START);
    quiet(&mut machine, after(100_000));
    machine.handle_claiming(true);
    looks_at(&mut machine, "e", START);
}

#[test]
fn nothing_is_done_before_the_first_list() {
    let mut machine = ClaimMachine::new("drain", "worker-1");
    machine.handle_claiming(true);
    machine.handle_change(LifecycleChange::Applied(event("e", ClaimStatus::Pending)));
    quiet(&mut machine, START);
    assert_eq!(machine.poll_timeout(START), None);
}

#[test]
fn an_error_answer_is_reported_and_ends_the_event() {
    let claimed = event("e", ClaimStatus::Claimed);
    let mut machine = machine(vec![claimed.clone()]);
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&claimed, true, ""))), START);
    assert!(matches!(machine.poll_action(START), Some(ClaimAction::Call(_))));
    machine.handle_done(
        ActionResult::Answered(Some(Reply::Error("not mine".to_owned()))),
        START,
    );
    assert_eq!(
        machine.poll_notice(),
        Some(ClaimNotice::Failed {
            event: "e".to_owned(),
            why: "not mine".to_owned()
        })
    );
    let Some(ClaimAction::Write(_, EventUpdate::Finish { status, driver })) = machine.poll_action(START)
    else {
        panic!("it goes on")
    };
    assert_eq!((status, driver.as_deref()), (ClaimStatus::Failed, Some("drain")));
}

fn busy(machine: &mut ClaimMachine) {
    machine.handle_driver_state(&DriverState::Running {
        id: "r-3".to_owned(),
        what: "the drain for DrainRequest drain-3".to_owned(),
    });
}

#[test]
fn an_event_is_not_claimed_while_another_triggers_drain_has_the_node_and_says_so_once() {
    let pending = event("e", ClaimStatus::Pending);
    let mut machine = machine(vec![pending.clone()]);
    busy(&mut machine);
    quiet(&mut machine, START);
    let waits = ClaimNotice::Waiting {
        event: "e".to_owned(),
        what: "the drain for DrainRequest drain-3".to_owned(),
    };
    assert_eq!(machine.poll_notice(), Some(waits));
    machine.handle_change(LifecycleChange::Applied(pending));
    quiet(&mut machine, after(3_600_000));
    assert_eq!(machine.poll_notice(), None);
    assert_eq!(
        machine.poll_timeout(after(3_600_000)),
        None,
        "it waits for a change"
    );
    machine.handle_driver_state(&DriverState::Idle);
    looks_at(&mut machine, "e", after(3_600_000));
}

#[test]
fn a_claimed_event_goes_on_while_the_driver_is_at_it() {
    let mut machine = machine(vec![event("e", ClaimStatus::Claimed)]);
    busy(&mut machine);
    looks_at(&mut machine, "e", START);
    assert_eq!(machine.poll_notice(), None);
}
