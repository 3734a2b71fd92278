//! The table, row by row: call, event and progress on the left; answer and action on the right.

use scupper_engine::{Blocker, PodRef, Time, Uid};

use super::*;
use crate::RequestedSettings;

const END: Method = Method::End { expired: false };
const EXPIRED: Method = Method::End { expired: true };

fn identity() -> Identity {
    let intents = [
        ("drain", Intent::Drain),
        ("drain-uncordon", Intent::Uncordon),
        ("mapped", Intent::Drain),
    ];
    Identity {
        driver: "drain".to_owned(),
        node: "worker-1".to_owned(),
        intents: intents.map(|(name, intent)| (name.to_owned(), intent)).into(),
    }
}

fn call(method: Method) -> Call {
    Call {
        method,
        transition: "drain".to_owned(),
        event: "e".to_owned(),
        node: "worker-1".to_owned(),
        start: "s".to_owned(),
        end: "x".to_owned(),
    }
}

fn event() -> LifecycleEvent {
    LifecycleEvent {
        uid: "u1".to_owned(),
        name: "e".to_owned(),
        created: None,
        deleting: false,
        transition: "drain".to_owned(),
        node: "worker-1".to_owned(),
        claim: ClaimStatus::Claimed,
        driver: Some("drain".to_owned()),
        sla: Some(Time::from_millis(1)),
        flags: None,
    }
}

fn condition(reason: &str) -> CallDecision {
    CallDecision::Answer(Reply::ConditionReason(reason.to_owned()), None)
}

const EMPTY: CallDecision = CallDecision::Answer(Reply::Empty, None);

#[track_caller]
fn check(call: &Call, event: &LifecycleEvent, progress: EventProgress<'_>, expected: &CallDecision) {
    assert_eq!(decide(&identity(), call, Some(event), progress), *expected);
}

#[track_caller]
fn refused(call: &Call, event: Option<&LifecycleEvent>, progress: EventProgress<'_>, reports: &[&str]) {
    let decision = decide(&identity(), call, event, progress);
    let CallDecision::Answer(Reply::Error(error), None) = &decision else {
        panic!("not refused: {decision:?}")
    };
    for report in reports {
        assert!(error.contains(report), "`{error}` should tell `{report}`");
    }
}

#[test]
fn start_begins_once_and_answers_start() {
    let begun = CallDecision::Answer(
        Reply::ConditionReason("s".to_owned()),
        Some(CallEffect::Begin(Intent::Drain)),
    );
    check(&call(Method::Start), &event(), EventProgress::NotBegun, &begun);
    check(
        &call(Method::Start),
        &event(),
        EventProgress::Running,
        &condition("s"),
    );
}

#[test]
fn end_starts_a_drain_that_has_not_begun_and_is_empty_while_it_runs() {
    let begun = CallDecision::Answer(Reply::Empty, Some(CallEffect::Begin(Intent::Drain)));
    check(&call(END), &event(), EventProgress::NotBegun, &begun);
    check(&call(END), &event(), EventProgress::Running, &EMPTY);
}

#[test]
fn the_transition_decides_the_intent() {
    for (transition, intent) in [
        ("drain", Intent::Drain),
        ("drain-uncordon", Intent::Uncordon),
        ("mapped", Intent::Drain),
    ] {
        let call = Call {
            transition: transition.to_owned(),
            ..call(END)
        };
        let event = LifecycleEvent {
            transition: transition.to_owned(),
            ..event()
        };
        check(
            &call,
            &event,
            EventProgress::NotBegun,
            &CallDecision::Answer(Reply::Empty, Some(CallEffect::Begin(intent))),
        );
    }
}

#[test]
fn only_success_is_an_end() {
    for outcome in [Outcome::Drained, Outcome::Uncordoned { cordon_kept: true }] {
        check(
            &call(END),
            &event(),
            EventProgress::Ended(&outcome),
            &condition("x"),
        );
        check(
            &call(Method::Start),
            &event(),
            EventProgress::Ended(&outcome),
            &condition("x"),
        );
        let deleting = LifecycleEvent {
            deleting: true,
            ..event()
        };
        check(
            &call(END),
            &deleting,
            EventProgress::Ended(&outcome),
            &condition("x"),
        );
    }
}

#[test]
fn the_kubelet_writes_expiry_itself() {
    let outcome = Outcome::DeadlineExceeded {
        remaining: vec![pod("web-1")],
        held_up: None,
    };
    check(&call(END), &event(), EventProgress::Ended(&outcome), &EMPTY);
    check(
        &call(Method::Start),
        &event(),
        EventProgress::Ended(&outcome),
        &EMPTY,
    );
    // Without a deadline of its own the event would wait for ever, and so would an event that is being deleted.
    let endless = LifecycleEvent { sla: None, ..event() };
    refused(
        &call(END),
        Some(&endless),
        EventProgress::Ended(&outcome),
        &["deadline", "default/web-1"],
    );
    let deleting = LifecycleEvent {
        deleting: true,
        ..event()
    };
    refused(
        &call(END),
        Some(&deleting),
        EventProgress::Ended(&outcome),
        &["deadline", "default/web-1"],
    );
}

#[test]
fn an_expired_call_expires_the_work_and_begins_none() {
    check(
        &call(EXPIRED),
        &event(),
        EventProgress::Running,
        &CallDecision::Answer(Reply::Empty, Some(CallEffect::Expire)),
    );
    check(&call(EXPIRED), &event(), EventProgress::NotBegun, &EMPTY);
}

#[test]
fn every_other_end_is_an_error_with_all_details() {
    let blocked = Outcome::Blocked {
        pods: vec![
            blocker("a", "has no controller", "kubectl"),
            blocker("b", "has local storage", "careful"),
        ],
    };
    let reports = [
        "default/a: has no controller [kubectl]",
        "default/b: has local storage [careful]",
        "nothing has changed",
    ];
    refused(
        &call(END),
        Some(&event()),
        EventProgress::Ended(&blocked),
        &reports,
    );
    let policy = Outcome::PolicyFailed {
        policy: "slurm".to_owned(),
        message: "no such host".to_owned(),
    };
    refused(
        &call(END),
        Some(&event()),
        EventProgress::Ended(&policy),
        &["slurm", "no such host"],
    );
    let failed = Outcome::Failed {
        message: "no right to evict".to_owned(),
    };
    refused(
        &call(Method::Start),
        Some(&event()),
        EventProgress::Ended(&failed),
        &["no right to evict"],
    );
    let cancelled = Outcome::Cancelled {
        reason: "why not".to_owned(),
    };
    refused(
        &call(END),
        Some(&event()),
        EventProgress::Ended(&cancelled),
        &["cancelled", "why not"],
    );
    let lost = Outcome::Lost {
        reason: "over".to_owned(),
    };
    refused(
        &call(END),
        Some(&event()),
        EventProgress::Ended(&lost),
        &["lost", "over"],
    );
}

#[test]
fn nothing_is_begun_while_something_else_is_under_way_or_is_handed_over() {
    for method in [Method::Start, END, EXPIRED] {
        check(&call(method), &event(), EventProgress::DriverBusy, &EMPTY);
        check(&call(method), &event(), EventProgress::HandingOver, &EMPTY);
    }
}

#[test]
fn a_deleted_event_ends_in_an_error_once_nothing_is_left_to_roll_back() {
    let deleting = LifecycleEvent {
        deleting: true,
        ..event()
    };
    for method in [Method::Start, END] {
        check(&call(method), &deleting, EventProgress::Running, &EMPTY);
        check(&call(method), &deleting, EventProgress::HandingOver, &EMPTY);
        refused(
            &call(method),
            Some(&deleting),
            EventProgress::NotBegun,
            &["deleted"],
        );
        refused(
            &call(method),
            Some(&deleting),
            EventProgress::DriverBusy,
            &["deleted"],
        );
    }
}

#[test]
fn a_watch_that_is_behind_is_waited_for() {
    assert_eq!(
        decide(&identity(), &call(END), None, EventProgress::NotBegun),
        CallDecision::EventUnknown
    );
    let former = LifecycleEvent {
        transition: "drain-uncordon".to_owned(),
        ..event()
    };
    assert_eq!(
        decide(&identity(), &call(END), Some(&former), EventProgress::NotBegun),
        CallDecision::EventUnknown
    );
    for claim in [
        ClaimStatus::Pending,
        ClaimStatus::Succeeded,
        ClaimStatus::Other("Odd".to_owned()),
    ] {
        let event = LifecycleEvent { claim, ..event() };
        check(&call(Method::Start), &event, EventProgress::NotBegun, &EMPTY);
        check(&call(END), &event, EventProgress::NotBegun, &EMPTY);
    }
}

#[test]
fn an_event_that_is_over_begins_nothing() {
    for claim in [ClaimStatus::Failed, ClaimStatus::SlaExpired] {
        let over = LifecycleEvent {
            claim: claim.clone(),
            ..event()
        };
        refused(
            &call(Method::Start),
            Some(&over),
            EventProgress::NotBegun,
            &["has ended", claim.as_str()],
        );
    }
}

#[test]
fn calls_for_others_are_refused_by_name() {
    let other_node = Call {
        node: "worker-2".to_owned(),
        ..call(Method::Start)
    };
    refused(
        &other_node,
        Some(&event()),
        EventProgress::NotBegun,
        &["worker-1", "worker-2"],
    );
    let bound_elsewhere = LifecycleEvent {
        node: "worker-2".to_owned(),
        ..event()
    };
    refused(
        &call(END),
        Some(&bound_elsewhere),
        EventProgress::NotBegun,
        &["worker-1", "worker-2"],
    );
    let foreign = LifecycleEvent {
        driver: Some("kssd".to_owned()),
        ..event()
    };
    refused(
        &call(END),
        Some(&foreign),
        EventProgress::NotBegun,
        &["kssd", "drain"],
    );
    let unknown = Call {
        transition: "reboot".to_owned(),
        ..call(Method::Start)
    };
    refused(
        &unknown,
        None,
        EventProgress::NotBegun,
        &["reboot", "drain, drain-uncordon, mapped"],
    );
}

#[test]
fn transitions_that_cannot_work_are_refused() {
    for (start, end, report) in [
        ("same", "same", "differ"),
        ("", "x", "differ"),
        ("s", "", "differ"),
        ("shutdown-drain-started", "x", "graceful node shutdown"),
        ("s", "shutdown-drain-started", "graceful node shutdown"),
    ] {
        let call = Call {
            start: start.to_owned(),
            end: end.to_owned(),
            ..call(Method::Start)
        };
        refused(
            &call,
            Some(&event()),
            EventProgress::NotBegun,
            &["transition drain", report],
        );
    }
}

#[test]
fn edited_reasons_are_taken_from_the_call() {
    let edited = Call {
        start: "s2".to_owned(),
        end: "x2".to_owned(),
        ..call(END)
    };
    check(
        &edited,
        &event(),
        EventProgress::Ended(&Outcome::Drained),
        &condition("x2"),
    );
    let edited = Call {
        method: Method::Start,
        ..edited
    };
    check(&edited, &event(), EventProgress::Running, &condition("s2"));
}

#[test]
fn an_event_without_a_driver_is_ours_by_its_transition() {
    let anonymous = LifecycleEvent {
        driver: None,
        ..event()
    };
    check(
        &call(Method::Start),
        &anonymous,
        EventProgress::Running,
        &condition("s"),
    );
    assert!(identity().owns(&anonymous));
    assert!(!identity().owns(&LifecycleEvent {
        transition: "reboot".to_owned(),
        ..anonymous
    }));
}

fn blocker(name: &str, reason: &str, policy: &str) -> Blocker {
    Blocker {
        pod: pod(name),
        reason: reason.to_owned(),
        policy: policy.to_owned(),
    }
}

fn pod(name: &str) -> PodRef {
    PodRef {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: Uid::new(format!("uid-{name}")),
    }
}

#[test]
fn invalid_flags_fail_the_event_before_any_work_begins() {
    let odd = LifecycleEvent {
        flags: Some(Err("unknown field".to_owned())),
        ..event()
    };
    for method in [Method::Start, END, EXPIRED] {
        let error = CallDecision::Answer(Reply::Error("unknown field".to_owned()), None);
        check(&call(method), &odd, EventProgress::NotBegun, &error);
    }
}

#[test]
fn an_event_does_not_wait_past_its_own_deadline() {
    let flags = RequestedSettings {
        timeout: Some(std::time::Duration::from_secs(1)),
        ..RequestedSettings::default()
    };
    let own = LifecycleEvent {
        flags: Some(Ok(flags)),
        ..event()
    };
    let outcome = Outcome::DeadlineExceeded {
        remaining: Vec::new(),
        held_up: None,
    };
    check(&call(END), &event(), EventProgress::Ended(&outcome), &EMPTY);
    let decision = decide(
        &identity(),
        &call(END),
        Some(&own),
        EventProgress::Ended(&outcome),
    );
    assert!(
        matches!(decision, CallDecision::Answer(Reply::Error(_), None)),
        "{decision:?}"
    );
}
