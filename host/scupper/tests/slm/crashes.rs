//! Scenario 21: the driver is killed at every step of its work and restarted before the kubelet's next pass.
//!
//! Each point is provoked from outside: the API server hangs at the request that marks it, the driver is killed there,
//! and the next instance finds the effect of the request. The driver has no failpoints.

use std::time::Duration;

use scupper_simulator::api::{Action, Fault, RequestRecord};
use scupper_simulator::kubelet::{Entry, Kind};
use serde_json::json;

use crate::driver::Driver;
use crate::objects::{closed_budget, pod, slow};
use crate::policies;
use crate::rig::{DRIVER, NODE, Rig, UNCORDON};

const NODE_PATH: &str = "/api/v1/nodes/worker-1";
const EVICTIONS: &str = "/api/v1/namespaces/*/pods/*/eviction";
const AGENT: &str = "scupper";

/// The driver's `number`th write of its node, from 0.
fn node_write(number: u32, action: Action) -> Fault {
    Fault::new(action)
        .method("PATCH")
        .path(NODE_PATH)
        .user_agent(AGENT)
        .skip(number)
}

/// The driver's `number`th eviction, from 0, and those after it.
fn eviction(number: u32, action: Action) -> Fault {
    Fault::new(action)
        .method("POST")
        .path(EVICTIONS)
        .user_agent(AGENT)
        .skip(number)
}

/// Waits until a fault holds a request.
async fn gripped(rig: &Rig, driver: &mut Driver, fault: &Fault, mark: usize) {
    let pattern = fault.path.rsplit('/').next().unwrap().to_owned();
    rig.until("the driver hangs at the point", || {
        assert!(driver.is_running(), "it ended:\n{}", driver.log());
        let all = rig.api.requests_since(mark);
        let same = all.iter().filter(|it| {
            it.method == fault.method && it.path.ends_with(&pattern) && it.user_agent.starts_with(AGENT)
        });
        let same: Vec<_> = same.collect();
        same.len() > fault.skip as usize
            && same
                .iter()
                .skip(fault.skip as usize)
                .any(|it| it.status.is_none())
    })
    .await;
}

/// Kills the driver while the kubelet is not calling it, and starts the next one before the kubelet's next pass.
async fn replace(rig: &Rig, mut driver: Driver, more: &[&str]) -> Driver {
    let held = rig.kubelet.hold().await;
    driver.kill();
    rig.api.clear_faults();
    let next = rig.driver(more).await;
    rig.until("the dead endpoint is gone", || rig.endpoints().len() == 1)
        .await;
    drop(held);
    next
}

/// Drains with a driver that is killed at the fault, and checks that the drain ends correctly.
async fn drain_killed_at(rig: &Rig, fault: Fault, more: &[&str]) {
    let mut driver = rig.driver(more).await;
    let mark = rig.api.mark();
    rig.api.faults([fault.clone()]);
    rig.event("drain", DRIVER);
    gripped(rig, &mut driver, &fault, mark).await;
    let _next = replace(rig, driver, more).await;
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty(), "left behind: {:?}", rig.pod_names());
    assert!(rig.is_cordoned());
    rig.check_evicted_at_most_once();
    let starts = rig
        .kubelet
        .record()
        .pick(|entry| matches!(entry, Entry::Finished { .. }).then_some(()));
    assert_eq!(starts.len(), 1);
}

async fn rig_with_pods() -> Rig {
    let rig = Rig::start().await;
    rig.pods(&["a", "b", "c", "d"]);
    rig
}

#[tokio::test]
async fn scenario_21_killed_before_the_plan() {
    let rig = rig_with_pods().await;
    let list = Fault::new(Action::Hang)
        .method("GET")
        .path("/api/v1/pods")
        .user_agent(AGENT);
    drain_killed_at(&rig, list, &[]).await;
}

#[tokio::test]
async fn scenario_21_killed_after_the_plan_before_the_cordon_is_written() {
    let rig = rig_with_pods().await;
    drain_killed_at(&rig, node_write(0, Action::Hang), &[]).await;
}

#[tokio::test]
async fn scenario_21_killed_after_the_cordon_is_written() {
    let rig = rig_with_pods().await;
    drain_killed_at(&rig, node_write(0, Action::HangAfter), &[]).await;
}

#[tokio::test]
async fn scenario_21_killed_before_every_save_that_of_the_finish_included() {
    killed_at_every_save(Action::Hang).await;
}

#[tokio::test]
async fn scenario_21_killed_after_every_save_that_of_the_finish_included() {
    killed_at_every_save(Action::HangAfter).await;
}

/// For any number of saves: the last round finds none left.
async fn killed_at_every_save(action: Action) {
    for number in 1.. {
        let rig = rig_with_pods().await;
        let driver = rig.driver(&[]).await;
        rig.api.faults([node_write(number, action.clone())]);
        rig.event("drain", DRIVER);
        let is_save = |it: &RequestRecord| {
            it.method == "PATCH" && it.path == NODE_PATH && it.user_agent.starts_with(AGENT)
        };
        let reached = || rig.api.requests().into_iter().filter(is_save).count() > number as usize;
        // The final write may come when the event is already being removed.
        rig.until("the write comes or the event ends", || {
            reached() || rig.get_event("drain").is_none()
        })
        .await;
        let last = !reached();
        if !last {
            let _next = replace(&rig, driver, &[]).await;
            assert_eq!(rig.end_of("drain").await, "Succeeded", "killed at write {number}");
        }
        assert!(
            rig.pod_names().is_empty(),
            "killed at write {number}: {:?}",
            rig.pod_names()
        );
        assert!(rig.is_cordoned());
        rig.check_evicted_at_most_once();
        if last {
            assert!(number > 1, "a drain saves what it does");
            return;
        }
    }
}

#[tokio::test]
async fn scenario_21_killed_mid_wave_before_evictions_arrive() {
    let rig = rig_with_pods().await;
    drain_killed_at(&rig, eviction(1, Action::Hang), &[]).await;
}

#[tokio::test]
async fn scenario_21_killed_mid_wave_before_evictions_are_answered() {
    let rig = rig_with_pods().await;
    drain_killed_at(&rig, eviction(0, Action::HangAfter), &[]).await;
}

#[tokio::test]
async fn scenario_21_killed_while_pods_terminate() {
    let rig = Rig::start().await;
    for name in ["a", "b", "c"] {
        rig.apply(slow(pod(name), Duration::from_secs(4)));
    }
    let driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.until("all are evicted", || {
        rig.evictions()
            .values()
            .flatten()
            .filter(|it| **it == Some(201))
            .count()
            == 3
    })
    .await;
    let _next = replace(&rig, driver, &[]).await;
    assert_eq!(rig.pod_names().len(), 3, "they still terminate");
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
    rig.check_evicted_at_most_once();
}

#[tokio::test]
async fn scenario_21_killed_at_the_last_list() {
    let rig = rig_with_pods().await;
    rig.apply(closed_budget());
    let mut driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    // The lists before are those of the watch; the last list comes once all pods are gone.
    rig.until("the budget refuses", || !rig.evictions().is_empty())
        .await;
    let look = Fault::new(Action::Hang)
        .method("GET")
        .path("/api/v1/pods")
        .verb("list")
        .user_agent(AGENT);
    rig.api.faults([look]);
    rig.delete_budget();
    rig.until("the last look hangs", || {
        assert!(driver.is_running());
        let all = rig.api.requests();
        all.iter().any(|it| {
            it.verb == "list"
                && it.resource == "pods"
                && it.user_agent.starts_with(AGENT)
                && it.status.is_none()
        })
    })
    .await;
    assert!(rig.pod_names().is_empty());
    let _next = replace(&rig, driver, &[]).await;
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    rig.check_evicted_at_most_once();
}

#[tokio::test]
async fn scenario_21_killed_during_a_hook_step_and_after_it() {
    for action in [Action::Hang, Action::HangAfter] {
        let rig = Rig::start().await;
        rig.apply(policies::slurm_pod(pod("slurm-worker")));
        rig.pods(&["a", "b"]);
        let policy = policies::argument("slurm");
        let grant = "slurm=node-annotations:nodeset.slinky.slurm.net/";
        let more = [
            "--policy",
            policy.as_str(),
            "--grant",
            grant,
            "--policy-config",
            "slurm.poll-seconds=1",
        ];
        // The step annotates the node before the cordon: the first write of the node is this one.
        let fault = node_write(0, action);
        let mut driver = rig.driver(&more).await;
        let mark = rig.api.mark();
        rig.api.faults([fault.clone()]);
        rig.event("drain", DRIVER);
        gripped(&rig, &mut driver, &fault, mark).await;
        let first = driver.log();
        let next = replace(&rig, driver, &more).await;
        rig.until("the step was taken", || {
            policies::annotation(&rig.node()).is_some()
        })
        .await;
        policies::finish_jobs(&rig, "slurm-worker");
        assert_eq!(rig.end_of("drain").await, "Succeeded");
        let steps = [first, next.log()]
            .iter()
            .map(|log| log.matches("annotates").count())
            .sum::<usize>();
        assert!((1..=2).contains(&steps), "the step was taken {steps} times");
        assert!(rig.pod_names().is_empty());
        rig.check_evicted_at_most_once();
    }
}

#[tokio::test]
async fn scenario_21_killed_between_waves() {
    let rig = Rig::start().await;
    for (name, priority) in [("low-1", 0), ("low-2", 0), ("high-1", 5000), ("high-2", 5000)] {
        let mut pod = pod(name);
        pod["spec"]["priority"] = json!(priority);
        rig.apply(pod);
    }
    let policy = policies::argument("priority");
    let more = ["--policy", policy.as_str()];
    // The first two evictions are the first wave's; the third begins the second.
    drain_killed_at(&rig, eviction(2, Action::Hang), &more).await;
    let order: Vec<String> = rig
        .api
        .requests()
        .iter()
        .filter(|it| it.subresource == "eviction" && it.status == Some(201))
        .map(|it| it.path.split('/').rev().nth(1).unwrap().to_owned())
        .collect();
    assert!(order[..2].iter().all(|name| name.starts_with("low")), "{order:?}");
}

#[tokio::test]
async fn scenario_21_killed_during_the_rollback_of_a_cancel() {
    for action in [Action::Hang, Action::HangAfter] {
        let rig = rig_with_pods().await;
        rig.apply(closed_budget());
        let mut driver = rig.driver(&[]).await;
        rig.event("drain", DRIVER);
        rig.until("the budget refuses", || {
            !rig.evictions().is_empty() && rig.is_cordoned()
        })
        .await;
        rig.called(Kind::End, 1).await;
        let writes = rig.api.mark();
        let fault = node_write(0, action);
        rig.api.faults([fault]);
        let held = rig.kubelet.hold().await;
        rig.delete_event("drain");
        rig.until("the roll-back hangs", || {
            assert!(driver.is_running());
            let since = rig.api.requests_since(writes);
            since
                .iter()
                .any(|it| it.method == "PATCH" && it.path == NODE_PATH && it.status.is_none())
        })
        .await;
        drop(held);
        let _next = replace(&rig, driver, &[]).await;
        assert_eq!(rig.end_of("drain").await, "Failed");
        rig.until("the cordon is lifted", || !rig.is_cordoned()).await;
        rig.delete_budget();
        rig.passes(5).await;
        assert_eq!(rig.pod_names().len(), 4, "nothing is evicted after a cancel");
    }
}

#[tokio::test]
async fn scenario_21_killed_during_an_uncordon() {
    for action in [Action::Hang, Action::HangAfter] {
        let rig = rig_with_pods().await;
        let mut driver = rig.driver(&[]).await;
        rig.event("drain", DRIVER);
        assert_eq!(rig.end_of("drain").await, "Succeeded");
        let before = rig.api.mark();
        rig.api.faults([node_write(0, action)]);
        rig.event("back", UNCORDON);
        rig.until("the uncordon hangs", || {
            assert!(driver.is_running());
            let since = rig.api.requests_since(before);
            since
                .iter()
                .any(|it| it.method == "PATCH" && it.path == NODE_PATH && it.status.is_none())
        })
        .await;
        let _next = replace(&rig, driver, &[]).await;
        assert_eq!(rig.end_of("back").await, "Succeeded");
        assert!(!rig.is_cordoned());
        rig.check_evicted_at_most_once();
    }
}

/// No driver can prevent this: it died inside a call, so the kubelet fails the event. The next instance reports it, and
/// evicts nothing more.
#[tokio::test]
async fn scenario_21_killed_inside_a_call_loses_the_event() {
    let rig = rig_with_pods().await;
    rig.apply(closed_budget());
    let mut driver = rig.driver(&[]).await;
    rig.event("drain", DRIVER);
    rig.until("the budget refuses", || {
        !rig.evictions().is_empty() && rig.is_cordoned()
    })
    .await;
    rig.called(Kind::End, 1).await;
    driver.freeze();
    let under_way = || {
        let entries = rig.kubelet.record().entries();
        matches!(
            entries.iter().rev().find(|it| !matches!(it, Entry::Passed(_))),
            Some(Entry::Calling { .. })
        )
    };
    rig.until("a call is under way", under_way).await;
    driver.kill();
    assert_eq!(rig.end_of("drain").await, "Failed");
    let evicted = rig.evictions();
    let next = rig.driver(&[]).await;
    rig.until("the next instance says that the drain is lost", || {
        next.output().to_lowercase().contains("lost") || next.log().to_lowercase().contains("lost")
    })
    .await;
    rig.delete_budget();
    rig.passes(8).await;
    assert_eq!(rig.evictions(), evicted, "nothing more is evicted");
    assert_eq!(rig.pod_names().len(), 4);
    assert!(rig.is_cordoned(), "a cordon is kept as kubectl drain leaves it");
    assert_eq!(rig.node()["metadata"]["name"], NODE);
}
