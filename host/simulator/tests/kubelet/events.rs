//! Claiming, driving and ending events: the contract's scenarios, with a scripted driver.

use std::time::Duration;

use scupper_contract::FINALIZER;
use scupper_simulator::kubelet::{Entry, Kind, Mode, Options, Outcome, Record, Step, Timing};
use serde_json::json;

use crate::cluster::{Cluster, Hands, condition, finalizers, reason, status};
use crate::driver::{Plugin, Registered, Reply, Service};
use crate::world::{LIMIT, World, step};

const DRIVER: &str = "drain.example";
const DRAIN: &str = "drain";
const START: &str = "drain-started";
const END: &str = "drain-complete";

/// A cluster with the drain transition, and a kubelet on it.
async fn world() -> (Cluster, World) {
    world_with(|_| {}).await
}

async fn world_with(change: impl FnOnce(&mut Options)) -> (Cluster, World) {
    let cluster = Cluster::start().await;
    cluster
        .transition(
            DRAIN,
            json!({"driver": DRIVER, "start": START, "end": END, "allNodes": true}),
        )
        .await;
    let world = World::on(cluster.client(), change).await;
    (cluster, world)
}

/// A registered driver that answers by `replies`.
async fn driver(world: &World, replies: impl IntoIterator<Item = Reply>) -> (Service, Registered) {
    driver_at(world, "a", replies).await
}

async fn driver_at(
    world: &World,
    name: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> (Service, Registered) {
    let service = Service::serve(&world.service(name), replies);
    let front = Registered::serve(&world.registry(name), Plugin::new(DRIVER, &service.path));
    assert!(front.wait_notified(1).await[0].0);
    (service, front)
}

fn kinds(service: &Service) -> Vec<&'static str> {
    service.heard().iter().map(|heard| heard.call).collect()
}

/// Waits until the kubelet has written a terminal status, and gives it.
async fn ended(world: &World, event: &str) -> String {
    let status = |record: &Record| {
        record
            .finished()
            .into_iter()
            .find(|(name, _)| name == event)
            .map(|(_, status)| status)
    };
    world
        .kubelet
        .wait_for(|record| status(record).is_some(), LIMIT)
        .await
        .unwrap();
    status(world.kubelet.record()).unwrap()
}

/// Waits for so many more passes.
async fn passes(world: &World, more: usize) {
    let before = world.kubelet.passes().len();
    world
        .kubelet
        .wait_for(|record| record.passes().len() >= before + more, LIMIT)
        .await
        .unwrap();
}

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
    let why = Outcome::Left(format!("SLM driver {DRIVER} is not registered"));
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
    let first = &service.heard()[0];
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
async fn the_condition_is_written_as_the_contract_says() {
    let hands = Hands::at("2026-09-01T10:00:07.900Z");
    let (cluster, world) = world_with(|options| options.now = hands.now()).await;
    let _driver = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| !record.reasons().is_empty(), LIMIT)
        .await
        .unwrap();
    let condition = condition(&cluster.node().await).unwrap();
    assert_eq!(condition.status, "True");
    assert_eq!(condition.reason.as_deref(), Some(START));
    assert_eq!(condition.message.as_deref(), Some("Lifecycle Transition 'drain'"));
    let at = "2026-09-01T10:00:07Z".parse().unwrap();
    assert_eq!(condition.last_heartbeat_time.map(|time| time.0), Some(at));
    assert_eq!(condition.last_transition_time.map(|time| time.0), Some(at));
}

#[tokio::test]
async fn an_endpoint_that_does_not_accept_fails_the_event() {
    for crashed in [true, false] {
        let (cluster, world) =
            world_with(|options| options.timing.readiness = Duration::from_millis(300)).await;
        let (path, listener);
        if crashed {
            // The file stays, nobody listens: the kubelet still counts the driver as registered.
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
        service.say(Reply::Condition(START));
        service.say(Reply::Condition(END));
        // The stale end of the one before would end the next at once.
        service.say(Reply::Condition("other"));
    }
    for event in ["a", "b", "c"] {
        cluster.gone(event).await;
    }
    assert_eq!(watch.most_at_once(), 1);
}

#[tokio::test]
async fn a_restarted_kubelet_resumes_by_the_reason() {
    // A Claimed event whose driver is not registered yet fails: here the sockets are found before the events.
    let (cluster, world) = world_with(|options| options.timing.sync_poll = Duration::from_secs(1)).await;
    let (service, front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    world.kubelet.restart().await.unwrap();
    front.wait_notified(2).await;
    service.say(Reply::Condition(END));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    assert_eq!(kinds(&service).iter().filter(|kind| **kind == "start").count(), 1);
    assert_eq!(
        world
            .kubelet
            .record()
            .pick(|e| matches!(e, Entry::Claimed { .. }).then_some(()))
            .len(),
        1
    );
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
    let before = service.heard().len();
    hands.forward(Duration::from_secs(35));
    assert_eq!(ended(&world, "e").await, "SlaExpired");
    cluster.gone("e").await;
    passes(&world, 2).await;
    assert!(
        service.heard().len() <= before + 1,
        "only a call that was under way"
    );
    assert_eq!(reason(&cluster.node().await), START, "the condition stays");
}

#[tokio::test]
async fn by_the_proposal_the_driver_is_told_of_expiry() {
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
    let last = service.heard().pop().unwrap();
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
        assert_eq!(service.heard().len(), replies.len(), "{replies:?}");
        assert_ne!(reason(&cluster.node().await), END, "an error is not patched");
    }
}

/// The contract's table of answers: what is written, and which call is next.
#[tokio::test]
async fn answers_lead_to_the_next_call() {
    use Reply::Condition;
    let rows: [(&[Reply], &[&str], &[&str]); 8] = [
        (
            &[Condition(START), Condition(END)],
            &["start", "end"],
            &[START, END],
        ),
        (&[Condition(END)], &["start"], &[END]),
        (
            &[Condition("other"), Condition(END)],
            &["start", "start"],
            &["other", END],
        ),
        (&[Condition(""), Condition(END)], &["start", "start"], &[END]),
        (
            &[Condition(START), Condition(""), Condition(END)],
            &["start", "end", "end"],
            &[START, END],
        ),
        (
            &[Condition(START), Condition(START), Condition(END)],
            &["start", "end", "end"],
            &[START, START, END],
        ),
        (
            &[Condition(START), Condition("other"), Condition(END)],
            &["start", "end", "start"],
            &[START, "other", END],
        ),
        (
            &[Reply::ConditionOf(END, ""), Condition(END)],
            &["start", "start"],
            &[END],
        ),
    ];
    for (replies, calls, written) in rows {
        let (cluster, world) = world().await;
        let (service, _front) = driver(&world, replies.to_vec()).await;
        cluster.event("e", DRAIN).await;
        assert_eq!(ended(&world, "e").await, "Succeeded", "{replies:?}");
        assert_eq!(kinds(&service), calls, "{replies:?}");
        assert_eq!(world.kubelet.record().reasons(), written, "{replies:?}");
    }
}

#[tokio::test]
async fn stale_reasons_skip_calls() {
    for (stale, calls) in [
        (END, &[][..]),
        (START, &["end"][..]),
        ("other", &["start", "end"][..]),
    ] {
        let (cluster, world) = world().await;
        cluster.set_reason(stale).await;
        let (service, _front) = driver(&world, []).await;
        for call in calls {
            service.say(Reply::Condition(if *call == "start" { START } else { END }));
        }
        cluster.event("e", DRAIN).await;
        assert_eq!(ended(&world, "e").await, "Succeeded", "{stale}");
        assert_eq!(kinds(&service), calls, "{stale}");
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
    while service.heard().is_empty() {
        tokio::task::yield_now().await;
    }
    world.kubelet.drop_connections();
    assert_eq!(ended(&world, "e").await, "Failed");
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

/// The trap of half an hour without a call: the channel sleeps, and waiting for it does not wake it.
#[tokio::test(start_paused = true)]
async fn a_channel_that_slept_for_half_an_hour_fails_the_claim() {
    for (minutes, status) in [(29, "Succeeded"), (31, "Failed")] {
        let (cluster, world) = world_with(|options| options.timing = Timing::default()).await;
        let service = Service::serve(&world.service("a"), [Reply::Condition(END)]);
        let front = Registered::serve(&world.registry("a"), Plugin::new(DRIVER, &service.path));
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
async fn the_newest_endpoint_is_called_and_the_older_one_after_it() {
    let (cluster, world) = world().await;
    let (old, _old_front) = driver_at(&world, "old", []).await;
    let (new, new_front) = driver_at(&world, "new", [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    assert!(old.heard().is_empty());
    new_front.remove();
    let gone = Entry::Deregistered {
        driver: DRIVER.into(),
        endpoint: new.path.clone(),
    };
    world
        .kubelet
        .wait_for(|record| record.entries().contains(&gone), LIMIT)
        .await
        .unwrap();
    old.say(Reply::Condition(END));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    assert_eq!(kinds(&old), ["end"]);
}

#[tokio::test]
async fn a_transition_that_went_or_changed_counts_at_the_next_pass() {
    let (cluster, world) = world().await;
    let (service, _front) = driver(&world, [Reply::Condition(START)]).await;
    cluster.event("e", DRAIN).await;
    world
        .kubelet
        .wait_for(|record| record.calls().len() >= 2, LIMIT)
        .await
        .unwrap();
    cluster.delete_transition(DRAIN).await;
    passes(&world, 1).await;
    let calls = world.kubelet.calls().len();
    passes(&world, 3).await;
    assert_eq!(
        world.kubelet.calls().len(),
        calls,
        "no calls without the transition"
    );
    assert_eq!(status(&cluster.get("e").await.unwrap()), "Claimed");
    // Its driver is the claim's, whatever the transition says now; its words are read anew.
    let anew = json!({"driver": "another.example", "start": "begun", "end": "over", "allNodes": true});
    cluster.transition(DRAIN, anew).await;
    service.say(Reply::Condition("over"));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    assert_eq!(service.heard().pop().unwrap().call, "start");
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
    service.say(Reply::Condition(END));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    passes(&world, 1).await;
    let event = cluster.get("e").await.unwrap();
    assert_eq!(status(&event), "Succeeded");
    assert!(event.metadata.deletion_timestamp.is_some());
    assert_eq!(finalizers(&event), ["example.com/hold"]);
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
    assert!(service.heard().is_empty());
}

#[tokio::test]
async fn a_foreign_claim_is_driven_by_the_prototype_and_left_by_the_proposal() {
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

#[tokio::test]
async fn terminal_leftovers_are_removed() {
    let (cluster, world) = world().await;
    cluster.event("e", DRAIN).await;
    cluster.set_status("e", json!({"claimStatus": "Failed"})).await;
    cluster.gone("e").await;
    assert!(world.kubelet.calls().is_empty());
}

#[tokio::test]
async fn a_drivers_own_transitions_go_some_time_after_it() {
    let (cluster, world) =
        world_with(|options| options.timing.cleanup_delay = Duration::from_millis(500)).await;
    let (_service, front) = driver(&world, []).await;
    let spec =
        |node: &str, driver: &str| json!({"driver": driver, "start": START, "end": END, "nodeName": node});
    cluster.transition("own", spec("worker-1", DRIVER)).await;
    cluster.transition("other-node", spec("worker-2", DRIVER)).await;
    cluster
        .transition("other-driver", spec("worker-1", "another.example"))
        .await;
    front.remove();
    cluster.transition_gone("own").await;
    for kept in [DRAIN, "other-node", "other-driver"] {
        assert!(cluster.has_transition(kept).await, "{kept}");
    }
}

#[tokio::test]
async fn a_driver_that_is_back_in_time_keeps_its_transitions() {
    let (cluster, world) = world_with(|options| options.timing.cleanup_delay = Duration::from_secs(2)).await;
    let (_service, front) = driver(&world, []).await;
    let own = json!({"driver": DRIVER, "start": START, "end": END, "nodeName": "worker-1"});
    cluster.transition("own", own).await;
    let begun = tokio::time::Instant::now();
    front.remove();
    drop(front);
    let _front = Registered::serve(&world.registry("b"), Plugin::new(DRIVER, &world.service("b")));
    let gone = Entry::CleanedUp {
        selector: format!("spec.nodeName=worker-1,spec.driver={DRIVER}"),
        error: None,
    };
    tokio::time::sleep_until(begun + Duration::from_millis(2500)).await;
    assert!(!world.kubelet.record().entries().contains(&gone));
    assert!(cluster.has_transition("own").await);
}

#[tokio::test]
async fn a_kubelet_that_starts_removes_all_transitions_of_its_node() {
    let (cluster, world) = world().await;
    let spec = |node: &str| json!({"driver": DRIVER, "start": START, "end": END, "nodeName": node});
    cluster.transition("own", spec("worker-1")).await;
    cluster.transition("other", spec("worker-2")).await;
    world.kubelet.restart().await.unwrap();
    cluster.transition_gone("own").await;
    assert!(cluster.has_transition("other").await);
    assert!(cluster.has_transition(DRAIN).await);
}
