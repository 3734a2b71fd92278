//! Start and End, and the resulting commands to the driver.

use std::time::Duration;

use scupper_api::ClaimStatus;
use scupper_contract::slm::LifecycleTransitionResponse;
use scupper_engine::{Intent, Outcome, Time};
use scupper_triggers::slm::LifecycleEvent;
use scupper_triggers::{DrainCommand, ResumePoint, TriggerRequest};
use tonic::client::Grpc;
use tonic_prost::ProstCodec;

use crate::fixture::{
    Answer, ApiCall, Kubelet, Root, SlmTrigger, claimed, dial, start_request, wait_for_socket,
};

fn request(id: &str, name: &str) -> TriggerRequest {
    TriggerRequest {
        id: id.to_owned(),
        name: name.to_owned(),
        trigger: "LifecycleEvent".to_owned(),
        intent: Intent::Drain,
        deadline: None,
        flags: None,
        only_pods: None,
    }
}

#[tokio::test]
async fn a_drain_from_start_to_end() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));

    assert_eq!(kubelet.start("drain-1").await, Answer::condition("drain-started"));
    assert_eq!(
        trigger.command().await,
        DrainCommand::Begin(request("u1", "drain-1"))
    );
    assert_eq!(kubelet.end("drain-1").await, Answer::Empty);
    trigger.working("u1");
    assert_eq!(kubelet.end("drain-1").await, Answer::Empty);
    assert_eq!(kubelet.start("drain-1").await, Answer::condition("drain-started"));

    trigger.ended("u1", Outcome::Drained);
    assert_eq!(kubelet.end("drain-1").await, Answer::condition("drain-complete"));
    assert!(trigger.commands.try_recv().is_err(), "begun once");
}

#[tokio::test]
async fn the_short_path_is_also_served() {
    let root = Root::new();
    let (mut trigger, kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));

    let mut client = Grpc::new(dial(kubelet.info.endpoint.as_ref()).await);
    client.ready().await.unwrap();
    let path = "/v1alpha1.SLMPlugin/StartLifecycleTransition".parse().unwrap();
    let call = tonic::Request::new(start_request("drain-1"));
    let answer = client.unary(call, path, ProstCodec::default()).await.unwrap();
    let answer: LifecycleTransitionResponse = answer.into_inner();
    assert_eq!(answer.lifecycle_condition, "drain-started");
    assert_eq!(
        trigger.command().await,
        DrainCommand::Begin(request("u1", "drain-1"))
    );
}

#[tokio::test]
async fn a_call_waits_briefly_until_its_event_is_visible() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    let call = tokio::spawn(async move { kubelet.end("drain-1").await });
    tokio::task::yield_now().await;
    trigger.apply(claimed("u1", "drain-1"));
    assert_eq!(call.await.unwrap(), Answer::Empty);
    assert_eq!(
        trigger.command().await,
        DrainCommand::Begin(request("u1", "drain-1"))
    );
}

#[tokio::test]
async fn a_call_that_the_kubelet_aborted_begins_nothing() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    let call = kubelet.end("drain-1");
    assert!(
        tokio::time::timeout(Duration::from_millis(100), call)
            .await
            .is_err()
    );
    // Answers on one connection come after earlier messages on it.
    let mut foreign = start_request("drain-1");
    foreign.transition_name = "reboot".to_owned();
    kubelet.service.start_lifecycle_transition(foreign).await.unwrap();
    trigger.apply(claimed("u1", "drain-1"));
    trigger.settle().await;
    assert!(trigger.commands.try_recv().is_err());
}

#[tokio::test]
async fn an_event_that_never_becomes_visible_begins_nothing() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    assert_eq!(kubelet.start("drain-1").await, Answer::Empty);
    assert!(trigger.commands.try_recv().is_err());
}

#[tokio::test]
async fn a_deleted_event_cancels_and_ends_when_the_cordon_is_rolled_back() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));
    kubelet.start("drain-1").await;
    assert_eq!(
        trigger.command().await,
        DrainCommand::Begin(request("u1", "drain-1"))
    );
    trigger.working("u1");

    trigger.apply(LifecycleEvent {
        deleting: true,
        ..claimed("u1", "drain-1")
    });
    let reason = "LifecycleEvent drain-1 was deleted".to_owned();
    assert_eq!(
        trigger.command().await,
        DrainCommand::Cancel {
            id: "u1".to_owned(),
            reason: reason.clone()
        }
    );
    assert_eq!(kubelet.end("drain-1").await, Answer::Empty);

    trigger.ended(
        "u1",
        Outcome::Cancelled {
            reason: reason.clone(),
        },
    );
    assert_eq!(
        kubelet.end("drain-1").await,
        Answer::Error(format!("cancelled: {reason}"))
    );
    trigger.gone("u1");

    // The same name again is another drain.
    trigger.apply(claimed("u2", "drain-1"));
    assert_eq!(kubelet.end("drain-1").await, Answer::Empty);
    assert_eq!(
        trigger.command().await,
        DrainCommand::Begin(request("u2", "drain-1"))
    );
}

#[tokio::test]
async fn the_deadline_follows_the_event() {
    let root = Root::new();
    let (mut trigger, mut kubelet) = SlmTrigger::registered(&root).await;
    let sla = |secs: u64| Some(Time::from_millis(1_000_000 + secs * 1000));
    trigger.apply(LifecycleEvent {
        sla: sla(300),
        ..claimed("u1", "drain-1")
    });
    kubelet.start("drain-1").await;
    let DrainCommand::Begin(begun) = trigger.command().await else {
        panic!("not begun")
    };
    assert_eq!(begun.deadline, sla(285));
    trigger.apply(LifecycleEvent {
        sla: sla(200),
        ..claimed("u1", "drain-1")
    });
    assert_eq!(
        trigger.command().await,
        DrainCommand::Deadline {
            id: "u1".to_owned(),
            deadline: sla(185)
        }
    );
    trigger.apply(LifecycleEvent {
        claim: ClaimStatus::SlaExpired,
        ..claimed("u1", "drain-1")
    });
    let DrainCommand::Lost { id, reason } = trigger.command().await else {
        panic!("not lost")
    };
    assert_eq!(
        (id.as_str(), reason.as_str()),
        ("u1", "LifecycleEvent drain-1 has ended: SlaExpired")
    );
}

#[tokio::test]
async fn a_checkpoint_is_resumed_or_lost() {
    let resume = || {
        Some(ResumePoint {
            id: "u1".to_owned(),
            name: "drain-1".to_owned(),
            intent: Intent::Drain,
            deadline: None,
            only_pods: None,
            finished: false,
        })
    };
    let root = Root::new();
    let mut trigger = SlmTrigger::open(root.options("one"), resume());
    trigger.list(vec![claimed("u1", "drain-1")]);
    assert_eq!(
        trigger.command().await,
        DrainCommand::Begin(request("u1", "drain-1"))
    );
    let mut kubelet = Kubelet::meet(&wait_for_socket(&root).await).await;
    assert_eq!(kubelet.end("drain-1").await, Answer::Empty);

    let root = Root::new();
    let mut trigger = SlmTrigger::open(root.options("two"), resume());
    trigger.list(vec![claimed("u2", "drain-1")]);
    let reason = "LifecycleEvent drain-1 is gone".to_owned();
    assert_eq!(
        trigger.command().await,
        DrainCommand::Lost {
            id: "u1".to_owned(),
            reason
        }
    );
}

#[tokio::test]
async fn a_foreign_success_is_reported() {
    let root = Root::new();
    let (trigger, _kubelet) = SlmTrigger::registered(&root).await;
    trigger.apply(claimed("u1", "drain-1"));
    trigger.apply(LifecycleEvent {
        claim: ClaimStatus::Succeeded,
        ..claimed("u1", "drain-1")
    });
    let calls = trigger
        .calls("a warning", |calls| matches!(calls, ApiCall::Warn(..)))
        .await;
    let ApiCall::Warn(reason, message) = calls else {
        panic!("not a warning")
    };
    assert_eq!(reason, "NotDrained");
    assert!(message.contains("drain-1"), "{message}");
}
