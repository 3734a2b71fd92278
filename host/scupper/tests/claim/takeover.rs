//! The next driver is up while the last one still works: the last one records its progress on the node, and only that
//! counts. The policy's hook of five steps logs in each driver which steps it took there, and whether it reverted them.

use std::time::Duration;

use scupper_simulator::api::{Action, Fault};
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::guests::guest;
use crate::node::Node;
use crate::objects::{closed_budget, pod};
use crate::pairs::Pairs;
use crate::rig::{DRIVER, NODE, UNCORDON};

const PUT_BACK: &str = "five steps were put back";
const COMPLETED: &str = "False/True DrainCompleted";
/// The default grace period of a pod, with a margin for a busy machine.
const GRACE: Duration = Duration::from_secs(60);

/// The trigger of the drain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trigger {
    Event,
    Cordon,
}

fn policy() -> String {
    format!("five={}", guest("five_steps").display())
}

/// Two pods that a budget blocks, and more of them by these names.
async fn node(trigger: Trigger, more: &[&str]) -> (Node, Pairs) {
    let node = Node::start().await;
    if trigger == Trigger::Cordon {
        let label = json!({"scupper.dev/drain-on-cordon": "true"});
        edit(&node, |it| it["metadata"]["labels"] = label);
    }
    for name in ["a", "b"].iter().chain(more) {
        node.apply(pod(name));
    }
    node.apply(closed_budget());
    let pairs = Pairs::watch(kube::Client::try_from(node.api.client_config()).unwrap(), NODE);
    (node, pairs)
}

fn edit(node: &Node, change: impl FnOnce(&mut Value)) {
    node.api.store().edit("nodes", "", NODE, change).unwrap();
}

fn ask(node: &Node, trigger: Trigger) {
    match trigger {
        Trigger::Event => drop(node.event("drain", DRIVER)),
        Trigger::Cordon => edit(node, |it| it["spec"]["unschedulable"] = json!(true)),
    }
}

fn remove(node: &Node, pod: &str) {
    node.api.store().delete("pods", "default", pod).unwrap();
}

fn took(driver: &Driver, step: u8) -> bool {
    driver.log().contains(&format!("step {step} of five was taken"))
}

async fn until_took(node: &Node, driver: &Driver, step: u8) {
    node.until(&format!("step {step}"), || took(driver, step)).await;
}

/// Waits until the pods terminate.
async fn until_evicting(node: &Node, driver: &Driver) {
    node.until("the budget holds the pods", || {
        driver.output().contains("waits    default/a")
    })
    .await;
}

/// The next driver, after everything it reads at its start.
async fn next_one(node: &Node, policy: &str) -> Driver {
    let next = node.spawn(&["--policy", policy]);
    node.until("the next one serves", || {
        next.log().contains("registration socket") || next.log().contains("LifecycleEvents are served")
    })
    .await;
    // Once its sockets exist it has read everything it reads at its start.
    node.until("the next driver is up beside the last one", || {
        let folder = node.kubelet.root().join("plugins").join(DRIVER);
        std::fs::read_dir(folder).is_ok_and(|entries| entries.count() >= 2)
    })
    .await;
    next
}

async fn drained(node: &Node, trigger: Trigger, pairs: &Pairs) {
    node.delete_budget();
    if trigger == Trigger::Event {
        assert_eq!(node.end_of("drain").await, "Succeeded");
    }
    node.until("it is drained", || pairs.last() == COMPLETED).await;
    assert!(node.pod_names().is_empty());
}

/// The next driver is alone and has handled everything it found.
async fn settled(node: &Node, next: &Driver) {
    node.until("the next one is alone", || next.log().contains("leads=true"))
        .await;
    node.event("settle", UNCORDON);
    assert_eq!(node.end_of("settle").await, "Succeeded");
}

#[tokio::test]
async fn a_drain_that_succeeds_while_the_next_driver_is_up_stays_drained() {
    let policy = policy();
    for trigger in [Trigger::Event, Trigger::Cordon] {
        let (node, pairs) = node(trigger, &[]).await;
        let mut driver = node.claimer(&["--policy", &policy]).await;
        ask(&node, trigger);
        until_evicting(&node, &driver).await;
        let next = next_one(&node, &policy).await;
        drained(&node, trigger, &pairs).await;
        driver.terminate();
        assert!(driver.ended(GRACE).await.success(), "{}", driver.log());
        settled(&node, &next).await;
        let said = format!("{trigger:?}: {}\n{}", next.output(), next.log());
        assert!(!next.log().contains(PUT_BACK), "{said}");
        assert!(!next.log().contains("of five was taken"), "{said}");
        assert!(!next.output().contains("Lost"), "{said}");
        assert!(!next.output().contains("cordon-worker-1"), "{said}");
        let story = pairs.story();
        let of_next = story.split(|pair| pair == COMPLETED).next_back().unwrap();
        assert!(
            of_next.iter().all(|pair| pair.ends_with("MaintenanceComplete")),
            "{trigger:?}: {story:?}"
        );
        node.check_evicted_at_most_once();
    }
}

#[tokio::test]
async fn steps_that_the_last_one_took_while_the_next_one_was_up_are_not_taken_again() {
    let policy = policy();
    for trigger in [Trigger::Event, Trigger::Cordon] {
        let (node, pairs) = node(trigger, &["hold-3"]).await;
        let mut driver = node.claimer(&["--policy", &policy]).await;
        ask(&node, trigger);
        until_took(&node, &driver, 2).await;
        let next = next_one(&node, &policy).await;
        remove(&node, "hold-3");
        until_took(&node, &driver, 5).await;
        until_evicting(&node, &driver).await;
        driver.terminate();
        assert!(driver.ended(GRACE).await.success(), "{}", driver.log());
        drained(&node, trigger, &pairs).await;
        let said = format!("{trigger:?}: {}\n{}", next.output(), next.log());
        assert!(!next.log().contains("of five was taken"), "{said}");
        assert!(!next.log().contains(PUT_BACK), "{said}");
    }
}

/// The drain was cancelled, with that saved, while the next driver was up, and the first one was killed before it had
/// reverted everything.
#[tokio::test]
async fn a_cancel_that_the_last_one_saved_is_a_cancel_for_the_next_one() {
    let policy = policy();
    let (node, pairs) = node(Trigger::Cordon, &["hold-cancel"]).await;
    let mut driver = node.claimer(&["--policy", &policy]).await;
    ask(&node, Trigger::Cordon);
    until_evicting(&node, &driver).await;
    let next = next_one(&node, &policy).await;
    edit(&node, |it| it["spec"]["unschedulable"] = json!(false));
    node.until("the cancel is saved", || {
        let text = node.node()["metadata"]["annotations"]["scupper.dev/drain"].clone();
        text.as_str().is_some_and(|text| text.contains("cancelled"))
    })
    .await;
    driver.kill();
    remove(&node, "hold-cancel");
    node.until("it ends", || {
        next.output().contains("Cancelled") || next.output().contains("Lost")
    })
    .await;
    let said = format!("{}\n{}", next.output(), next.log());
    assert!(!next.output().contains("Lost"), "{said}");
    assert!(next.log().contains(PUT_BACK), "{said}");
    node.until("the conditions say so", || {
        pairs.last() == "False/False DrainCancelled"
    })
    .await;
}

/// The first driver sees three pods go; the next one reports them.
#[tokio::test]
async fn pods_evicted_under_the_previous_driver_are_counted_by_the_next_one() {
    let (node, pairs) = node(Trigger::Event, &[]).await;
    for number in 0..3 {
        let mut free = pod(&format!("free-{number}"));
        free["metadata"]["labels"]["app"] = json!("free");
        node.apply(free);
    }
    let mut driver = node.claimer(&[]).await;
    ask(&node, Trigger::Event);
    node.until("three pods are gone", || node.pod_names() == ["a", "b"])
        .await;
    driver.kill();
    let next = node.claimer(&[]).await;
    drained(&node, Trigger::Event, &pairs).await;
    let conditions = node.node()["status"]["conditions"].clone();
    let said = conditions.as_array().unwrap().iter();
    let said = said
        .filter(|it| it["type"] == "Drained")
        .map(|it| it["message"].to_string());
    let said = said.collect::<String>();
    assert!(said.contains(": 5 pods"), "{said}: {}", next.output());
}

/// Longer than three tries without a pause, and longer than the end of a drain waits for its last writes.
#[tokio::test]
async fn the_ends_conditions_are_written_once_the_api_server_accepts_writes_again() {
    let (node, pairs) = node(Trigger::Cordon, &[]).await;
    let driver = node.claimer(&[]).await;
    ask(&node, Trigger::Cordon);
    until_evicting(&node, &driver).await;
    let status = format!("/api/v1/nodes/{NODE}/status");
    let fault = Fault::new(Action::Status(503, None))
        .method("PATCH")
        .path(&status);
    node.api.faults([fault]);
    node.delete_budget();
    node.until("the end has given its last words up", || {
        let log = driver.log();
        log.contains("are not written yet")
            || log.contains("could not be written in time")
            || log.contains("could not tell the API server node")
    })
    .await;
    assert!(node.pod_names().is_empty());
    assert_ne!(pairs.last(), COMPLETED);
    node.api.clear_faults();
    node.until("it says that it is drained", || pairs.last() == COMPLETED)
        .await;
}
