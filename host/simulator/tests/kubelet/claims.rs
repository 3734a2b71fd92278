//! From a pending event to a claimed one.

use std::time::Duration;

use scupper_contract::FINALIZER;
use scupper_simulator::kubelet::{Entry, Mode, Outcome, Step, Timing};
use serde_json::json;

use crate::cluster::{Hands, finalizers, status};
use crate::driver::{Plugin, Registered, Reply, Service};
use crate::events::{DRAIN, DRIVER, END, START, driver, ended, kinds, passes, world, world_with};
use crate::world::{LIMIT, step};

#[tokio::test]
async fn an_event_without_a_driver_stays_pending() {
    let (cluster, world) = world().await;
    cluster.event("e", DRAIN).await;
    passes(&world, 4).await;
    let event = cluster.get("e").await.unwrap();
    assert_eq!(status(&event), "Pending");
    assert!(finalizers(&event).is_empty());
    let left = world
        .kubelet
        .passes()
        .into_iter()
        .filter(|pass| pass.step == Step::Claim);
    assert!(left.clone().count() > 0);
    let why = Outcome::Unchanged(format!("SLM driver {DRIVER} is not registered"));
    assert!(left.into_iter().all(|pass| pass.outcome == why));
}

#[tokio::test]
async fn an_event_without_its_transition_stays_pending() {
    let (cluster, world) = world().await;
    let _driver = driver(&world, []).await;
    cluster.event("e", "another").await;
    passes(&world, 4).await;
    assert_eq!(status(&cluster.get("e").await.unwrap()), "Pending");
}

#[tokio::test]
async fn the_full_flow_takes_three_passes_after_the_claim() {
    let (cluster, world) = world().await;
    cluster.event("e", DRAIN).await;
    passes(&world, 1).await;
    let (service, _front) = driver(&world, [Reply::Condition(START), Reply::Condition(END)]).await;
    cluster.gone("e").await;
    assert_eq!(ended(&world, "e").await, "Succeeded");
    assert_eq!(kinds(&service), ["start", "end"]);
    assert_eq!(world.kubelet.record().reasons(), [START, END]);
    let first = &service.calls()[0];
    assert_eq!(
        (
            first.transition.as_str(),
            first.event.as_str(),
            first.node.as_str()
        ),
        (DRAIN, "e", "worker-1")
    );
    assert_eq!((first.start.as_str(), first.end.as_str()), (START, END));
    let steps = world.kubelet.record().pick(|entry| match entry {
        Entry::Passed(pass) if pass.event.is_some() && pass.outcome == Outcome::Done => Some(pass.step),
        _ => None,
    });
    assert_eq!(steps, [Step::Claim, Step::Drive, Step::Drive, Step::Drive]);
}

#[tokio::test]
async fn a_claim_writes_finalizer_driver_and_deadline() {
    let hands = Hands::at("2026-09-01T10:00:07.900Z");
    let (cluster, world) = world_with(|options| options.now = hands.now()).await;
    cluster.set(DRAIN, json!({"spec": {"sla": "1m30s"}})).await;
    let _driver = driver(&world, []).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| !record.calls().is_empty(), LIMIT)
        .await
        .unwrap();
    let event = cluster.get("e").await.unwrap();
    assert_eq!(finalizers(&event), [FINALIZER]);
    assert_eq!(
        event.data["status"],
        json!({"claimStatus": "Claimed", "driver": DRIVER, "sla": "2026-09-01T10:01:37Z"})
    );
}

#[tokio::test]
async fn an_endpoint_that_does_not_accept_fails_the_event() {
    for crashed in [true, false] {
        let (cluster, world) =
            world_with(|options| options.timing.readiness = Duration::from_millis(300)).await;
        let (path, listener);
        if crashed {
            // The file stays without a listener: the kubelet still counts the driver as registered.
            let (service, front) = driver(&world, []).await;
            service.crash().await;
            (path, listener) = (front, None);
        } else {
            std::fs::create_dir_all(world.service("a").parent().unwrap()).unwrap();
            let silent = std::os::unix::net::UnixListener::bind(world.service("a")).unwrap();
            let front = Registered::serve(&world.registry("a"), Plugin::new(DRIVER, &world.service("a")));
            front.wait_notified(1).await;
            (path, listener) = (front, Some(silent));
        }
        let begun = tokio::time::Instant::now();
        cluster.event("e", DRAIN).await;
        assert_eq!(ended(&world, "e").await, "Failed");
        assert!(begun.elapsed() >= Duration::from_millis(300));
        cluster.gone("e").await;
        assert!(world.kubelet.calls().is_empty());
        drop((path, listener));
    }
}

#[tokio::test]
async fn never_two_events_are_claimed() {
    let (cluster, world) = world().await;
    let watch = cluster.watch_claims().await;
    let (service, _front) = driver(&world, []).await;
    for event in ["a", "b", "c"] {
        cluster.event(event, DRAIN).await;
        service.reply_next(Reply::Condition(START));
        service.reply_next(Reply::Condition(END));
        // The stale end of the previous event would end the next one at once.
        service.reply_next(Reply::Condition("other"));
    }
    for event in ["a", "b", "c"] {
        cluster.gone(event).await;
    }
    assert_eq!(watch.most_at_once(), 1);
}

#[tokio::test]
async fn a_claimed_event_fails_when_the_first_pass_finds_no_driver() {
    let (cluster, world) = world().await;
    let (_service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    world.kubelet.stop().await;
    // As after a real restart, where the events are listed sooner than the sockets are dialled.
    std::fs::rename(world.registry("a"), world.registry(".a")).unwrap();
    world.kubelet.up().unwrap();
    assert_eq!(ended(&world, "e").await, "Failed");
    let last = world.kubelet.calls().pop().unwrap();
    assert_eq!(last.answer, Err(format!("SLM driver {DRIVER} is not registered")));
}

#[tokio::test]
async fn an_idle_channel_connects_for_a_call_and_not_for_a_claim() {
    // A call after the loss of the connection connects again.
    let (cluster, world) = world().await;
    let (_service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    world.kubelet.drop_connections();
    let calls = world.kubelet.calls().len();
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= calls + 2, LIMIT)
        .await
        .unwrap();
    assert!(world.kubelet.calls().pop().unwrap().answer.is_ok());

    // A claim does not.
    let (cluster, world) = world_with(|options| options.timing.readiness = Duration::from_millis(300)).await;
    let (_service, _front) = driver(&world, []).await;
    world.kubelet.drop_connections();
    cluster.event("e", DRAIN).await;
    assert_eq!(ended(&world, "e").await, "Failed");
}

/// The pitfall of half an hour without a call: the channel becomes idle, and waiting for it does not wake it.
#[tokio::test(start_paused = true)]
async fn a_channel_that_slept_for_half_an_hour_fails_the_claim() {
    for (minutes, status) in [(29, "Succeeded"), (31, "Failed")] {
        let (cluster, world) = world_with(|options| options.timing = Timing::default()).await;
        let service = Service::serve(&world.service("a"), [Reply::Condition(END)]);
        let front = Registered::serve(&world.registry("a"), Plugin::new(DRIVER, &service.path));
        // Long steps would end the registration's own calls before the sockets have transferred them.
        let begun = tokio::time::Instant::now();
        while front.notified().is_empty() && begun.elapsed() < Duration::from_secs(90) {
            step(Duration::from_millis(100)).await;
        }
        for _ in 0..minutes * 6 {
            step(Duration::from_secs(10)).await;
        }
        assert_eq!(front.notified().len(), 1);
        cluster.event("e", DRAIN).await;
        let begun = tokio::time::Instant::now();
        while world.kubelet.record().finished().is_empty() && begun.elapsed() < Duration::from_secs(90) {
            step(Duration::from_millis(500)).await;
        }
        assert_eq!(
            world.kubelet.record().finished(),
            [("e".to_owned(), status.to_owned())],
            "{minutes} min"
        );
        assert_eq!(kinds(&service).is_empty(), status == "Failed");
    }
}

#[tokio::test]
async fn a_pending_event_in_deletion_is_never_claimed() {
    let (cluster, world) = world().await;
    cluster
        .event_with("e", DRAIN, json!({"finalizers": ["example.com/hold"]}))
        .await;
    cluster.delete("e").await;
    let (service, _front) = driver(&world, []).await;
    passes(&world, 3).await;
    assert_eq!(status(&cluster.get("e").await.unwrap()), "Pending");
    assert!(service.calls().is_empty());
}

#[tokio::test]
async fn the_prototype_drives_a_foreign_claim_and_the_proposal_does_not() {
    let (cluster, world) = world().await;
    cluster.event("e", DRAIN).await;
    cluster
        .set_status(
            "e",
            json!({"claimStatus": "Claimed", "driver": "another.example"}),
        )
        .await;
    assert_eq!(ended(&world, "e").await, "Failed");

    let (cluster, world) = world_with(|options| options.mode = Mode::Proposal).await;
    cluster.event("e", DRAIN).await;
    cluster
        .set_status(
            "e",
            json!({"claimStatus": "Claimed", "driver": "another.example"}),
        )
        .await;
    passes(&world, 4).await;
    assert_eq!(status(&cluster.get("e").await.unwrap()), "Claimed");
}
