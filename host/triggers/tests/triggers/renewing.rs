//! The kubelet's channel becomes idle after 30 minutes without a call; before that the trigger gives it a new one.

use std::time::Duration;

use scupper_api::ClaimStatus;
use scupper_engine::Outcome;
use scupper_triggers::slm::LifecycleEvent;

use crate::fixture::{Answer, Kubelet, Root, SlmTrigger, claimed, eventually, still};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_idle_connection_is_renewed_and_the_old_one_is_forgotten_after_the_new_one_is_taken() {
    let root = Root::new();
    let (mut trigger, mut old) = SlmTrigger::registered(&root).await;
    trigger.calls("the transitions", |_| true).await;
    let _stopped = still();
    tokio::time::advance(19 * MINUTE).await;
    trigger.settle().await;
    assert_eq!(root.registry().len(), 1);
    tokio::time::advance(MINUTE + Duration::from_secs(2)).await;
    let both = eventually("a second socket", || {
        (root.registry().len() == 2).then(|| root.registry())
    })
    .await;

    // Both serve; the old one ends only once the new one is registered.
    trigger.apply(LifecycleEvent {
        claim: ClaimStatus::Pending,
        ..claimed("u1", "drain-1")
    });
    let mut new = Kubelet::meet(&both[1]).await;
    assert_ne!(new.info.endpoint, old.info.endpoint);
    assert_eq!(old.start("drain-1").await, Answer::Empty);
    tokio::time::advance(Duration::from_secs(2)).await;
    trigger.settle().await;
    assert_eq!(root.registry(), both);
    new.notify(true, "").await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let left = eventually("the old one's end", || {
        (root.registry().len() == 1).then(|| root.registry())
    })
    .await;
    assert_eq!(left, both[1..]);

    // For a while, a claim that still waits for the old connection is answered on it.
    assert_eq!(old.start("drain-1").await, Answer::Empty);
    assert_eq!(root.services().len(), 2);
    tokio::time::advance(MINUTE + Duration::from_secs(2)).await;
    eventually("the old service's end", || {
        (root.services().len() == 1).then_some(())
    })
    .await;

    trigger.apply(claimed("u1", "drain-1"));
    trigger.settle().await;
    assert_eq!(new.start("drain-1").await, Answer::condition("drain-started"));
    trigger.command().await;
}

#[tokio::test]
async fn nothing_is_renewed_while_an_event_is_claimed() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));
    kubelet.start("drain-1").await;
    trigger.command().await;
    let _stopped = still();
    tokio::time::advance(45 * MINUTE).await;
    trigger.settle().await;
    assert_eq!(root.registry().len(), 1);

    trigger.ended("u1", Outcome::Drained);
    trigger.gone("u1");
    trigger.settle().await;
    tokio::time::advance(Duration::from_secs(2)).await;
    eventually("a second socket", || (root.registry().len() == 2).then_some(())).await;
}

#[tokio::test]
async fn an_unclaimed_event_delays_it_only_for_a_while() {
    let root = Root::new();
    let (trigger, _kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(LifecycleEvent {
        claim: ClaimStatus::Pending,
        ..claimed("u1", "drain-1")
    });
    trigger.settle().await;
    let _stopped = still();
    tokio::time::advance(24 * MINUTE).await;
    trigger.settle().await;
    assert_eq!(root.registry().len(), 1);
    tokio::time::advance(MINUTE + Duration::from_secs(2)).await;
    eventually("a second socket", || (root.registry().len() == 2).then_some(())).await;
}

#[tokio::test]
async fn the_old_connection_stays_while_an_event_is_claimed() {
    let root = Root::new();
    let (trigger, _old) = SlmTrigger::registered(&root).await;
    let _stopped = still();
    tokio::time::advance(20 * MINUTE + Duration::from_secs(2)).await;
    let both = eventually("a second socket", || {
        (root.registry().len() == 2).then(|| root.registry())
    })
    .await;
    trigger.apply(claimed("u1", "drain-1"));
    trigger.settle().await;
    Kubelet::meet(&both[1]).await.notify(true, "").await;
    tokio::time::advance(Duration::from_secs(2)).await;
    trigger.settle().await;
    assert_eq!(root.registry(), both);
    trigger.gone("u1");
    trigger.settle().await;
    tokio::time::advance(Duration::from_secs(2)).await;
    eventually("the old one's end", || {
        (root.registry() == both[1..]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_shows_that_the_connection_is_awake() {
    let root = Root::new();
    let (trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(LifecycleEvent {
        claim: ClaimStatus::Pending,
        ..claimed("u1", "drain-1")
    });
    trigger.settle().await;
    let _stopped = still();
    tokio::time::advance(15 * MINUTE).await;
    assert_eq!(kubelet.start("drain-1").await, Answer::Empty);
    trigger.gone("u1");
    trigger.settle().await;
    tokio::time::advance(19 * MINUTE).await;
    trigger.settle().await;
    assert_eq!(root.registry().len(), 1);
    tokio::time::advance(MINUTE + Duration::from_secs(2)).await;
    eventually("a second socket", || (root.registry().len() == 2).then_some(())).await;
}
