//! A drain that another process continues.

use super::*;

/// The kubelet has claimed it, so its time limit is that of the transition: only the flag says how long it may take.
#[test]
fn a_restart_does_not_give_a_requested_timeout_anew() {
    let minutes = |count: u64| NOW + Duration::from_secs(60 * count);
    let event = || LifecycleEvent {
        sla: Some(minutes(60)),
        flags: Some(Ok(crate::RequestedSettings {
            timeout: Some(Duration::from_secs(600)),
            ..Default::default()
        })),
        ..claimed("u1", "e")
    };
    let deadline = |state: &mut SlmState| {
        std::iter::from_fn(|| state.poll_output()).find_map(|output| match output {
            SlmOutput::Command(DrainCommand::Begin(request)) => Some(request.deadline),
            _ => None,
        })
    };
    let mut first = state(None);
    apply(&mut first, event());
    end(&mut first, "e");
    assert_eq!(deadline(&mut first), Some(Some(minutes(10))));
    // Another process continues it from the mark nine minutes later.
    let mut second = state(resume_point(false).map(|left| ResumePoint {
        deadline: Some(minutes(10)),
        ..left
    }));
    second.handle_change(LifecycleChange::Applied(event()), minutes(9));
    assert_eq!(deadline(&mut second), Some(Some(minutes(10))));
}

/// The configuration was reloaded meanwhile and allows one of the flags no longer.
#[test]
fn a_drain_is_not_continued_without_its_flags() {
    let mut state = state(resume_point(false));
    apply(
        &mut state,
        LifecycleEvent {
            flags: Some(Err(
                "annotation: the driver's configuration does not allow --force".to_owned(),
            )),
            ..claimed("u1", "e")
        },
    );
    let begun = std::iter::from_fn(|| state.poll_output()).find_map(|output| match output {
        SlmOutput::Command(DrainCommand::Begin(request)) => Some(request),
        _ => None,
    });
    assert_eq!(begun, None, "it drains every pod, whatever --pod-selector said");
}
