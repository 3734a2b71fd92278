//! The driver is killed before and after each of its writes, and restarted: the event ends as if it had not been
//! killed.

use scupper_simulator::api::{Action, Fault};

use crate::driver::Driver;
use crate::node::Node;
use crate::rig::{DRIVER, END};

const AGENT: &str = "scupper";
const EVENT: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/drain";
const EVENT_STATUS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/drain/status";
const NODE_STATUS: &str = "/api/v1/nodes/worker-1/status";

/// Waits until the driver hangs in that request, and returns whether it got that far.
async fn gripped(node: &Node, driver: &mut Driver, fault: &Fault, mark: usize) -> bool {
    let hangs = || {
        let all = node.api.requests_since(mark).into_iter();
        let mut same = all.filter(|it| {
            it.method == fault.method && it.path == fault.path && it.user_agent.starts_with(AGENT)
        });
        same.nth(fault.skip as usize)
            .is_some_and(|it| it.status.is_none())
    };
    node.until("the driver hangs, or the event is gone", || {
        assert!(driver.is_running(), "it ended:\n{}", driver.log());
        hangs() || node.get_event("drain").is_none()
    })
    .await;
    hangs()
}

/// Kills it at every write of this kind, and returns the number of writes.
async fn killed_at_every(method: &str, path: &str, action: Action) -> u32 {
    for number in 0.. {
        let node = Node::start().await;
        node.pods(&["a", "b"]);
        // The result of an earlier event is also reset.
        node.set_reason(END);
        let mut driver = node.claimer(&[]).await;
        let mark = node.api.mark();
        let fault = Fault::new(action.clone())
            .method(method)
            .path(path)
            .user_agent(AGENT)
            .skip(number);
        node.api.faults([fault.clone()]);
        node.event("drain", DRIVER);
        let reached = gripped(&node, &mut driver, &fault, mark).await;
        driver.kill();
        node.api.clear_faults();
        let _next = node.claimer(&[]).await;
        assert_eq!(
            node.end_of("drain").await,
            "Succeeded",
            "killed at write {number}"
        );
        assert_eq!(node.statuses("drain"), ["Pending", "Claimed", "Succeeded"]);
        assert!(node.pod_names().is_empty(), "killed at write {number}");
        assert!(node.is_cordoned());
        node.check_evicted_at_most_once();
        if !reached {
            return number;
        }
    }
    unreachable!("there is an end to what a driver writes")
}

#[tokio::test]
async fn killed_before_and_after_every_write_of_the_finalizer() {
    assert_eq!(killed_at_every("PATCH", EVENT, Action::Hang).await, 2);
    assert_eq!(killed_at_every("PATCH", EVENT, Action::HangAfter).await, 2);
}

#[tokio::test]
async fn killed_before_and_after_every_write_of_the_status() {
    assert_eq!(killed_at_every("PATCH", EVENT_STATUS, Action::Hang).await, 2);
    assert_eq!(killed_at_every("PATCH", EVENT_STATUS, Action::HangAfter).await, 2);
}

#[tokio::test]
async fn killed_before_every_write_of_a_condition() {
    assert!(killed_at_every("PATCH", NODE_STATUS, Action::Hang).await >= 4);
}

#[tokio::test]
async fn killed_after_every_write_of_a_condition() {
    assert!(killed_at_every("PATCH", NODE_STATUS, Action::HangAfter).await >= 4);
}

#[tokio::test]
async fn killed_before_the_event_is_deleted() {
    assert_eq!(killed_at_every("DELETE", EVENT, Action::Hang).await, 1);
}
