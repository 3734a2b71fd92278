//! The ends of events.

use std::time::Duration;

use scupper_simulator::kubelet::{Entry, Kind, Mode};
use serde_json::json;

use crate::cluster::{Hands, finalizers, reason, status};
use crate::driver::Reply;
use crate::events::{DRAIN, DRIVER, END, START, driver, ended, kinds, passes, world, world_with};
use crate::world::LIMIT;

#[tokio::test]
async fn an_expired_event_ends_without_a_call() {
    let hands = Hands::at("2026-09-01T10:00:00Z");
    let (cluster, world) = world_with(|options| options.now = hands.now()).await;
    cluster.set(DRAIN, json!({"spec": {"sla": "35s"}})).await;
    let (service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 3, LIMIT)
        .await
        .unwrap();
    let before = service.calls().len();
    hands.forward(Duration::from_secs(35));
    assert_eq!(ended(&world, "e").await, "SlaExpired");
    cluster.gone("e").await;
    passes(&world, 2).await;
    assert!(
        service.calls().len() <= before + 1,
        "only a call that was under way"
    );
    assert_eq!(reason(&cluster.node().await), START, "the condition stays");
}

#[tokio::test]
async fn by_the_proposal_the_driver_learns_of_expiry() {
    let hands = Hands::at("2026-09-01T10:00:00Z");
    let (cluster, world) = world_with(|options| {
        options.now = hands.now();
        options.mode = Mode::Proposal;
    })
    .await;
    cluster.set(DRAIN, json!({"spec": {"sla": "35s"}})).await;
    let (service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    let event = cluster.get("e").await.unwrap();
    assert_eq!(
        event.data["status"]["driver"],
        json!({"name": DRIVER, "start": START, "end": END})
    );
    hands.forward(Duration::from_secs(40));
    assert_eq!(ended(&world, "e").await, "SLAExpired");
    let last = service.calls().pop().unwrap();
    assert_eq!((last.call, last.sla_expired), ("end", true));
}

#[tokio::test]
async fn an_error_fails_the_event_for_good() {
    let rows: [&[Reply]; 5] = [
        &[Reply::Error("no")],
        &[Reply::Condition(START), Reply::Error("no")],
        &[Reply::ErrorBeside("no", END)],
        &[Reply::Refuse],
        &[Reply::Condition(START), Reply::Refuse],
    ];
    for replies in rows {
        let (cluster, world) = world().await;
        let (service, _front) = driver(&world, replies.to_vec()).await;
        cluster.event("e", DRAIN).await;
        assert_eq!(ended(&world, "e").await, "Failed", "{replies:?}");
        cluster.gone("e").await;
        assert_eq!(service.calls().len(), replies.len(), "{replies:?}");
        assert_ne!(reason(&cluster.node().await), END, "an error is not patched");
    }
}

#[tokio::test]
async fn a_refused_or_late_patch_fails_the_event() {
    let (cluster, world) = world().await;
    world.kubelet.faults().refuse_patch(Some(403));
    let (_service, front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    assert_eq!(ended(&world, "e").await, "Failed");
    drop(front);

    let (cluster, world) = world_with(|options| options.timing.call = Duration::from_millis(300)).await;
    world.kubelet.faults().delay_patch(Some(Duration::from_secs(60)));
    let (_service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    assert_eq!(ended(&world, "e").await, "Failed");
    assert_eq!(reason(&cluster.node().await), "");
}

#[tokio::test]
async fn an_answer_for_another_node_fails_the_event() {
    let (cluster, world) = world().await;
    let (_service, _front) = driver(&world, [Reply::ConditionOf(START, "worker-2")]).await;
    cluster.event("e", DRAIN).await;
    assert_eq!(ended(&world, "e").await, "Failed");
}

#[tokio::test]
async fn a_call_that_takes_too_long_fails_the_event() {
    let (cluster, world) = world_with(|options| options.timing.call = Duration::from_millis(300)).await;
    let (service, _front) = driver(&world, [Reply::Late(Duration::from_secs(60))]).await;
    cluster.event("e", DRAIN).await;
    assert_eq!(ended(&world, "e").await, "Failed");
    assert_eq!(service.finished(), 0, "the call was cut");
    let answer = world.kubelet.calls().remove(0).answer;
    assert!(answer.unwrap_err().contains("DeadlineExceeded"));
}

#[tokio::test]
async fn a_cut_connection_fails_the_call_under_way() {
    let (cluster, world) = world().await;
    let (service, _front) = driver(&world, [Reply::Late(Duration::from_secs(60))]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(
            |record| {
                record.entries().iter().any(|e| {
                    matches!(
                        e,
                        Entry::Calling {
                            kind: Kind::Start,
                            ..
                        }
                    )
                })
            },
            LIMIT,
        )
        .await
        .unwrap();
    while service.calls().is_empty() {
        tokio::task::yield_now().await;
    }
    world.kubelet.drop_connections();
    assert_eq!(ended(&world, "e").await, "Failed");
}

#[tokio::test]
async fn a_conflict_at_the_end_drives_once_more() {
    let (cluster, world) = world().await;
    let (service, _front) = driver(&world, [Reply::Error("no"), Reply::Error("no")]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(
            |record| {
                !record
                    .pick(|e| matches!(e, Entry::Claimed { .. }).then_some(()))
                    .is_empty()
            },
            LIMIT,
        )
        .await
        .unwrap();
    world.kubelet.faults().refuse_status_writes(1);
    cluster.gone("e").await;
    assert_eq!(kinds(&service), ["start", "start"]);
}

#[tokio::test]
async fn a_deleted_event_is_driven_on_and_a_foreign_finalizer_keeps_it_visible() {
    let (cluster, world) = world().await;
    let (service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster
        .event_with("e", DRAIN, json!({"finalizers": ["example.com/hold"]}))
        .await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    cluster.delete("e").await;
    let calls = world.kubelet.calls().len();
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= calls + 2, LIMIT)
        .await
        .unwrap();
    service.reply_next(Reply::Condition(END));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    passes(&world, 1).await;
    let event = cluster.get("e").await.unwrap();
    assert_eq!(status(&event), "Succeeded");
    assert!(event.metadata.deletion_timestamp.is_some());
    assert_eq!(finalizers(&event), ["example.com/hold"]);
}

#[tokio::test]
async fn terminal_leftovers_are_removed() {
    let (cluster, world) = world().await;
    cluster.event("e", DRAIN).await;
    cluster.set_status("e", json!({"claimStatus": "Failed"})).await;
    cluster.gone("e").await;
    assert!(world.kubelet.calls().is_empty());
}
