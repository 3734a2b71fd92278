//! SIGTERM is not a cancel: the SLM trigger continues to answer until another process does.

use std::time::Duration;

use scupper_engine::Outcome;
use scupper_triggers::slm::SlmError;

use crate::fixture::{Answer, Ended, Kubelet, Root, SlmTrigger, claimed, eventually, still, within};

#[tokio::test]
async fn an_idle_slm_closes_at_once_and_leaves_nothing_behind() {
    let root = Root::new();
    let (trigger, _kubelet) = SlmTrigger::registered(&root).await;
    trigger.stop.cancel();
    trigger.end().await.unwrap();
    assert!(root.registry().is_empty() && root.services().is_empty());
    assert!(root.path().join("plugins_registry").is_dir() && root.path().join("plugins").is_dir());
}

#[tokio::test]
async fn a_claimed_event_is_answered_until_the_grace_is_nearly_over_and_nothing_is_begun() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));
    trigger.settle().await;
    let _stopped = still();
    trigger.stop.cancel();
    trigger.settle().await;
    tokio::time::advance(Duration::from_secs(22)).await;
    trigger.settle().await;
    assert_eq!(root.registry().len(), 1);
    assert_eq!(kubelet.start("drain-1").await, Answer::Empty);
    assert!(trigger.commands.try_recv().is_err());
    tokio::time::advance(Duration::from_secs(2)).await;
    eventually("the registration socket's end", || {
        root.registry().is_empty().then_some(())
    })
    .await;
    assert_eq!(kubelet.end("drain-1").await, Answer::Empty);
    tokio::time::advance(Duration::from_secs(2)).await;
    trigger.end().await.unwrap();
    assert!(root.services().is_empty());
}

#[tokio::test]
async fn a_drain_that_ends_while_closing_is_still_reported() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));
    kubelet.start("drain-1").await;
    trigger.command().await;
    trigger.working("u1");
    trigger.stop.cancel();
    trigger.ended("u1", Outcome::Drained);
    trigger.settle().await;
    assert_eq!(kubelet.end("drain-1").await, Answer::condition("drain-complete"));
}

#[tokio::test]
async fn a_successor_takes_over() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));
    kubelet.start("drain-1").await;
    trigger.command().await;
    trigger.working("u1");

    let mut successor = SlmTrigger::open(root.options("two"), None);
    successor.list(vec![claimed("u1", "drain-1")]);
    let sockets = eventually("the successor", || {
        (root.registry().len() == 2).then(|| root.registry())
    })
    .await;
    let mut kubelet = Kubelet::meet(&sockets[1]).await;
    assert_eq!(kubelet.start("drain-1").await, Answer::Empty);
    assert!(
        successor.commands.try_recv().is_err(),
        "one works while both are there"
    );

    trigger.stop.cancel();
    trigger.end().await.unwrap();
    assert_eq!(root.registry(), sockets[1..]);
    let begun = async {
        while kubelet.start("drain-1").await == Answer::Empty {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the successor's beginning", begun).await;
    successor.command().await;
}

#[tokio::test]
async fn a_driver_that_vanishes_closes_its_server() {
    let root = Root::new();
    let (mut trigger, _kubelet) = SlmTrigger::registered(&root).await;
    let (_, closed) = tokio::sync::mpsc::channel(1);
    trigger.commands = closed;
    trigger.apply(claimed("u1", "drain-1"));
    let (events, _) = tokio::sync::mpsc::unbounded_channel();
    trigger.events = events;
    let error = trigger.end().await.unwrap_err();
    assert!(matches!(error, Ended::Slm(SlmError::Wire { .. })), "{error:?}");
    assert!(root.registry().is_empty() && root.services().is_empty());
}
