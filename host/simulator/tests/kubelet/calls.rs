//! The calls for a claimed event, and the effect of their answers.

use std::time::Duration;

use scupper_simulator::kubelet::Entry;

use crate::cluster::{Hands, condition};
use crate::driver::Reply;
use crate::events::{DRAIN, DRIVER, END, START, driver, driver_at, ended, kinds, world, world_with};
use crate::world::LIMIT;

#[tokio::test]
async fn the_condition_is_written_as_the_contract_requires() {
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
    service.reply_next(Reply::Condition(END));
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

/// The contract's table of answers: the written condition, and the next call.
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
            service.reply_next(Reply::Condition(if *call == "start" { START } else { END }));
        }
        cluster.event("e", DRAIN).await;
        assert_eq!(ended(&world, "e").await, "Succeeded", "{stale}");
        assert_eq!(kinds(&service), calls, "{stale}");
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
    assert!(old.calls().is_empty());
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
    old.reply_next(Reply::Condition(END));
    assert_eq!(ended(&world, "e").await, "Succeeded");
    assert_eq!(kinds(&old), ["end"]);
}
