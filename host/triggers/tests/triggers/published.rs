//! The published transitions, which events name.

use std::time::Duration;

use scupper_api::{LifecycleTransition, TransitionNodes};
use scupper_triggers::slm::{SlmOptions, TransitionChange, TransitionScope};

use crate::fixture::{
    ApiCall, DRIVER, Kubelet, NODE, Root, SlmTrigger, claimed, eventually, still, wait_for_socket,
};

fn published(trigger: &SlmTrigger) -> Vec<LifecycleTransition> {
    let calls = trigger.api.calls.lock().unwrap();
    let publish = |calls: &ApiCall| match calls {
        ApiCall::Publish(transition) => Some(transition.clone()),
        ApiCall::Withdraw(_) | ApiCall::Warn(..) => None,
    };
    calls.iter().filter_map(publish).collect()
}

async fn count(trigger: &SlmTrigger, wanted: usize) -> Vec<LifecycleTransition> {
    eventually("transitions", || {
        Some(published(trigger)).filter(|all| all.len() >= wanted)
    })
    .await
}

#[tokio::test]
async fn nothing_is_published_before_the_kubelet_has_registered_us() {
    let root = Root::new();
    let trigger = SlmTrigger::open(root.options("one"), None);
    trigger
        .transitions
        .send(TransitionChange::Listed(vec![]))
        .unwrap();
    let mut kubelet = Kubelet::meet(&wait_for_socket(&root).await).await;
    kubelet.notify(false, "another driver has this endpoint").await;
    trigger.settle().await;
    assert!(published(&trigger).is_empty());
    kubelet.notify(true, "").await;
    is_published(&trigger).await;
}

#[tokio::test]
async fn for_a_kubelet_that_does_not_know_slm_they_are_published_because_we_claim() {
    let root = Root::new();
    let trigger = SlmTrigger::open(root.options("one"), None);
    trigger.list(vec![]);
    trigger
        .transitions
        .send(TransitionChange::Listed(vec![]))
        .unwrap();
    let mut kubelet = Kubelet::meet(&wait_for_socket(&root).await).await;
    kubelet
        .notify(false, "no handler registered for plugin type")
        .await;
    is_published(&trigger).await;
}

async fn is_published(trigger: &SlmTrigger) {
    let all = count(trigger, 2).await;
    let drain = LifecycleTransition {
        name: DRIVER.to_owned(),
        driver: DRIVER.to_owned(),
        start: "drain-started".to_owned(),
        end: "drain-complete".to_owned(),
        nodes: TransitionNodes::AllNodes,
        sla: None,
    };
    let uncordon = LifecycleTransition {
        name: format!("{DRIVER}-uncordon"),
        sla: Some(Duration::from_secs(300)),
        start: "uncordoning".to_owned(),
        end: "maintenance-complete".to_owned(),
        ..drain.clone()
    };
    assert_eq!(all, [drain, uncordon]);
}

#[tokio::test]
async fn transitions_that_a_starting_kubelet_deletes_are_restored_after_registration() {
    let root = Root::new();
    let trigger = SlmTrigger::open(
        SlmOptions {
            scope: TransitionScope::Node,
            ..root.options("one")
        },
        None,
    );
    trigger
        .transitions
        .send(TransitionChange::Listed(vec![]))
        .unwrap();
    let mut kubelet = Kubelet::meet(&wait_for_socket(&root).await).await;
    kubelet.notify(true, "").await;
    let names: Vec<_> = count(&trigger, 2).await.into_iter().map(|all| all.name).collect();
    assert_eq!(
        names,
        [format!("{DRIVER}.{NODE}"), format!("{DRIVER}-uncordon.{NODE}")]
    );

    let _stopped = still();
    for name in names {
        trigger.transitions.send(TransitionChange::Deleted(name)).unwrap();
    }
    trigger.settle().await;
    assert_eq!(
        published(&trigger).len(),
        2,
        "the kubelet may not have taken us again yet"
    );
    kubelet.notify(true, "").await;
    assert_eq!(count(&trigger, 4).await[2..], published(&trigger)[..2]);
}

#[tokio::test]
async fn deleted_or_changed_transitions_are_restored() {
    let root = Root::new();
    let (trigger, _kubelet) = SlmTrigger::registered(&root).await;
    let first = count(&trigger, 2).await;
    let _stopped = still();
    trigger
        .transitions
        .send(TransitionChange::Deleted(DRIVER.to_owned()))
        .unwrap();
    trigger.settle().await;
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(count(&trigger, 3).await[2], first[0]);
    let edited = LifecycleTransition {
        sla: None,
        ..first[1].clone()
    };
    trigger
        .transitions
        .send(TransitionChange::Applied(edited))
        .unwrap();
    trigger.settle().await;
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(count(&trigger, 4).await[3], first[1]);
}

#[tokio::test]
async fn the_node_selection_changes_by_deleting_and_not_while_an_event_is_claimed() {
    let root = Root::new();
    let (trigger, _kubelet) = SlmTrigger::registered(&root).await;
    let first = count(&trigger, 2).await;
    trigger.apply(claimed("u1", "drain-1"));
    trigger.settle().await;
    let _stopped = still();
    tokio::time::advance(Duration::from_secs(20)).await;
    let narrowed = LifecycleTransition {
        nodes: TransitionNodes::Selector,
        ..first[0].clone()
    };
    trigger
        .transitions
        .send(TransitionChange::Applied(narrowed))
        .unwrap();
    trigger.settle().await;
    assert_eq!(published(&trigger).len(), 2);

    trigger.gone("u1");
    trigger
        .calls("a withdrawal", |calls| {
            *calls == ApiCall::Withdraw(DRIVER.to_owned())
        })
        .await;
    assert_eq!(count(&trigger, 3).await[2], first[0]);
}

#[tokio::test]
async fn a_former_scope_of_this_node_is_withdrawn() {
    let root = Root::new();
    let (trigger, _kubelet) = SlmTrigger::registered(&root).await;
    let first = count(&trigger, 2).await;
    let former = LifecycleTransition {
        name: format!("{DRIVER}.{NODE}"),
        nodes: TransitionNodes::Node(NODE.to_owned()),
        ..first[0].clone()
    };
    let foreign = LifecycleTransition {
        name: format!("{DRIVER}.worker-2"),
        ..former.clone()
    };
    for transition in [foreign, former.clone()] {
        trigger
            .transitions
            .send(TransitionChange::Applied(transition))
            .unwrap();
    }
    trigger
        .calls("a withdrawal", |calls| {
            *calls == ApiCall::Withdraw(former.name.clone())
        })
        .await;
    trigger.settle().await;
    let withdrawn = |calls: &&ApiCall| matches!(calls, ApiCall::Withdraw(_));
    assert_eq!(
        trigger.api.calls.lock().unwrap().iter().filter(withdrawn).count(),
        1
    );
}
