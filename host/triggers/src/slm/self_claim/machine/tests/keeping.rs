//! Finished events are kept for a while, and of many only the newest.

use super::*;

/// Releases a finished event that was read; returns whether it is then deleted.
#[track_caller]
fn lets_go(machine: &mut ClaimMachine, event: &LifecycleEvent, now: Time) -> bool {
    looks_at(machine, &event.name, now);
    machine.handle_done(ActionResult::Read(Ok(snapshot(event, true, ""))), now);
    let Some(ClaimAction::Write(_, EventUpdate::Finalizers(left))) = machine.poll_action(now) else {
        panic!("it is still held")
    };
    assert!(left.is_empty(), "{left:?}");
    machine.handle_done(ActionResult::Written(Ok(versioned(event, false))), now);
    match machine.poll_action(now) {
        None => false,
        Some(ClaimAction::Delete(seen)) => seen.event.name == event.name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_finished_event_is_deleted_at_once_unless_it_is_to_be_kept() {
    let over = event("e", ClaimStatus::Succeeded);
    assert!(lets_go(
        &mut machine(vec![over]),
        &event("e", ClaimStatus::Succeeded),
        START
    ));
}

#[test]
fn a_finished_event_is_kept_for_its_time_and_not_held() {
    let claimed = event("e", ClaimStatus::Claimed);
    let over = event("e", ClaimStatus::Succeeded);
    let mut machine = machine(vec![claimed.clone()]).with_retention(Duration::from_secs(60));
    looks_at(&mut machine, "e", START);
    machine.handle_done(ActionResult::Read(Ok(snapshot(&claimed, true, "x"))), START);
    assert!(matches!(
        machine.poll_action(START),
        Some(ClaimAction::Write(_, EventUpdate::Finish { .. }))
    ));
    machine.handle_done(ActionResult::Written(Ok(versioned(&over, true))), START);
    // Its deletion need not wait for us.
    assert!(matches!(
        machine.poll_action(START),
        Some(ClaimAction::Write(_, EventUpdate::Finalizers(_)))
    ));
    machine.handle_done(ActionResult::Written(Ok(versioned(&over, false))), START);
    machine.handle_change(LifecycleChange::Applied(over.clone()));
    quiet(&mut machine, after(59_999));
    assert_eq!(machine.poll_timeout(after(1_000)), Some(after(60_000)));
    looks_at(&mut machine, "e", after(60_000));
    machine.handle_done(ActionResult::Read(Ok(snapshot(&over, false, ""))), after(60_000));
    assert!(matches!(
        machine.poll_action(after(60_000)),
        Some(ClaimAction::Delete(_))
    ));
}

#[test]
fn of_many_finished_events_the_newest_are_kept() {
    let of = |number: usize| {
        let mut event = event(&format!("e{number:02}"), ClaimStatus::Failed);
        event.created = Some(after(u64::try_from(number).unwrap()));
        event
    };
    let events: Vec<_> = (0..=MAX_RETAINED).map(of).collect();
    let mut machine = machine(events.clone()).with_retention(Duration::from_secs(60));
    assert!(lets_go(&mut machine, &events[0], START), "one too many");
    machine.handle_done(ActionResult::Deleted(Ok(())), START);
    quiet(&mut machine, after(59_999));
}

#[test]
fn a_kept_event_that_is_deleted_or_not_ours_is_not_waited_for() {
    let mut deleted = event("e", ClaimStatus::Succeeded);
    deleted.deleting = true;
    let mut machine = machine(vec![deleted]).with_retention(Duration::from_secs(60));
    looks_at(&mut machine, "e", START);
    let pending = event("p", ClaimStatus::Pending);
    machine.handle_done(ActionResult::Read(Ok(EventSnapshot::default())), START);
    machine.handle_change(LifecycleChange::Listed(vec![
        event("kept", ClaimStatus::Succeeded),
        pending,
    ]));
    looks_at(&mut machine, "p", START);
}
