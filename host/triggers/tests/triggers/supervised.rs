//! A bug in one of the trigger's tasks ends the driver, and is named.

use std::sync::atomic::Ordering;

use scupper_api::ClaimStatus;
use scupper_common::tasks::TaskEnded;
use scupper_triggers::slm::{Claimant, LifecycleEvent, SlmOptions, TransitionChange};

use crate::fixture::{Ended, Kubelet, Root, SlmTrigger, claimed, wait_for_socket};

/// Which task panicked, and how.
async fn panicked(trigger: SlmTrigger) -> (&'static str, String) {
    match trigger.end().await {
        Err(Ended::Task(TaskEnded::Panicked { name, message })) => (name, message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_panic_of_the_transition_publisher_is_named() {
    let root = Root::new();
    let trigger = SlmTrigger::open(root.options("one"), None);
    trigger.api.panics.store(true, Ordering::Relaxed);
    trigger.list(vec![]);
    let listed = TransitionChange::Listed(vec![]);
    trigger.transitions.send(listed).unwrap();
    let mut kubelet = Kubelet::meet(&wait_for_socket(&root).await).await;
    kubelet.notify(true, "").await;
    let scripted = ("transition publisher", "scripted".to_owned());
    assert_eq!(panicked(trigger).await, scripted);
}

#[tokio::test]
async fn a_panic_where_warnings_are_written_is_named() {
    let root = Root::new();
    let (trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.calls("published", |_| true).await;
    trigger.api.panics.store(true, Ordering::Relaxed);
    trigger.apply(LifecycleEvent {
        flags: Some(Err("invalid".to_owned())),
        ..claimed("u1", "drain-1")
    });
    kubelet.start("drain-1").await;
    let scripted = ("LifecycleEvent warnings", "scripted".to_owned());
    assert_eq!(panicked(trigger).await, scripted);
}

#[tokio::test]
async fn a_panic_of_the_task_that_claims_is_named() {
    let root = Root::new();
    let options = SlmOptions {
        claimant: Claimant::Driver,
        ..root.options("one")
    };
    let trigger = SlmTrigger::open(options, None);
    let pending = LifecycleEvent {
        claim: ClaimStatus::Pending,
        driver: None,
        ..claimed("u1", "drain-1")
    };
    trigger.list(vec![pending]);
    let (name, message) = panicked(trigger).await;
    assert_eq!(name, "self-claim");
    assert!(message.contains("drain-1"), "{message}");
}
