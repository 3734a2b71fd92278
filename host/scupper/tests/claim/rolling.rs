//! A rolling update, a second driver, and an API server outage, in the middle of a drain: the drain continues where it
//! was, and no pod is evicted twice.

use std::time::Duration;

use serde_json::{Value, json};

use crate::driver::Driver;
use crate::gate::Gate;
use crate::node::Node;
use crate::objects::{closed_budget, pod};
use crate::rig::{DRIVER, NODE};

const LEASES: &str = "leases.coordination.k8s.io";
/// The default grace period of a pod.
const GRACE: Duration = Duration::from_secs(30);

/// The trigger of the drain.
#[derive(Clone, Copy, Debug)]
enum Trigger {
    Event,
    Cordon,
}

/// A budget that allows one eviction, not two.
async fn node(trigger: Trigger) -> Node {
    let node = Node::start().await;
    if matches!(trigger, Trigger::Cordon) {
        let label = |node: &mut Value| {
            node["metadata"]["labels"] = json!({"scupper.dev/drain-on-cordon": "true"});
        };
        node.api.store().edit("nodes", "", NODE, label).unwrap();
    }
    let mut free = pod("free");
    free["metadata"]["labels"]["app"] = json!("free");
    node.apply(free);
    node.pods(&["a", "b"]);
    node.apply(closed_budget());
    node
}

/// Starts the drain, and waits until one pod is gone and the others are refused.
async fn begin(node: &Node, trigger: Trigger) {
    match trigger {
        Trigger::Event => {
            node.event("drain", DRIVER);
        }
        Trigger::Cordon => {
            let cordon = |node: &mut Value| node["spec"]["unschedulable"] = json!(true);
            node.api.store().edit("nodes", "", NODE, cordon).unwrap();
        }
    }
    // Whether the API server refuses, or the engine sees the budget first, does not matter here.
    node.until("the drain is in its middle", || {
        let evictions = node.evictions();
        evictions.contains_key("free") && node.pod_names() == ["a", "b"]
    })
    .await;
}

async fn ends_well(node: &Node, trigger: Trigger) {
    match trigger {
        Trigger::Event => assert_eq!(node.end_of("drain").await, "Succeeded"),
        Trigger::Cordon => {
            node.until("it is drained", || {
                node.reason("Drained").as_deref() == Some("DrainCompleted")
            })
            .await;
        }
    }
    assert!(node.pod_names().is_empty());
    assert!(node.is_cordoned());
    node.check_evicted_at_most_once();
    node.until("the lease is released", || node.list(LEASES).is_empty())
        .await;
}

fn mark(node: &Node) -> Value {
    let node = node.node();
    let text = node["metadata"]["annotations"]["scupper.dev/drain"].as_str();
    serde_json::from_str(text.unwrap()).unwrap()
}

#[tokio::test]
async fn a_driver_terminated_in_mid_drain_continues_after_its_restart() {
    for trigger in [Trigger::Event, Trigger::Cordon] {
        let node = node(trigger).await;
        let mut driver = node.claimer(&[]).await;
        begin(&node, trigger).await;
        assert_eq!(node.list(LEASES).len(), 1, "{trigger:?}");
        driver.terminate();
        assert!(driver.ended(GRACE).await.success(), "{}", driver.log());
        assert!(
            node.list(LEASES).is_empty(),
            "{trigger:?}: the next process need not wait"
        );
        assert_ne!(mark(&node)["phase"], "finished", "{trigger:?}: {}", mark(&node));
        assert!(node.is_cordoned());
        let evictions = node.evictions();
        node.delete_budget();
        let next = node.spawn(&[]);
        assert_eq!(
            node.evictions(),
            evictions,
            "{trigger:?}: there is no driver to evict them"
        );
        ends_well(&node, trigger).await;
        assert_eq!(node.evictions()["free"], [Some(201)]);
        assert!(!next.output().contains("Lost"), "{}", next.output());
    }
}

#[tokio::test]
async fn the_next_one_is_there_before_the_last_one_ends() {
    for trigger in [Trigger::Event, Trigger::Cordon] {
        let node = node(trigger).await;
        let mut driver = node.claimer(&[]).await;
        begin(&node, trigger).await;
        let next = node.spawn(&[]);
        node.until("the next one listens", || {
            next.log().contains("LifecycleEvents are served")
        })
        .await;
        driver.terminate();
        assert!(driver.ended(GRACE).await.success(), "{}", driver.log());
        node.delete_budget();
        ends_well(&node, trigger).await;
        assert_eq!(node.evictions()["free"], [Some(201)]);
    }
}

/// Two drivers of one name that cannot see each other by their sockets.
#[tokio::test]
async fn one_of_two_drivers_drains_and_the_other_stands_by_until_it_is_dead() {
    let node = node(Trigger::Event).await;
    let folder = tempfile::tempdir().unwrap();
    let mut drivers: Vec<_> = (0..2)
        .map(|number| node.stranger(folder.path(), number))
        .collect();
    node.until("both claim", || {
        drivers.iter().all(|driver| driver.log().contains("leads=true"))
    })
    .await;
    begin(&node, Trigger::Event).await;
    let stands_by = |driver: &Driver| driver.log().contains("waiting for the node's Lease");
    node.until("one stands by", || drivers.iter().any(stands_by))
        .await;
    let lease = node.list(LEASES).pop().unwrap();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap();
    let holds = |driver: &Driver| holder.rsplit('.').nth(1) == Some(driver.pid().to_string().as_str());
    let place = drivers.iter().position(holds).unwrap();
    let mut first = drivers.remove(place);
    assert!(!stands_by(&first) && stands_by(&drivers[0]));
    assert!(
        drivers[0].output().is_empty(),
        "it tells of no drain: {}",
        drivers[0].output()
    );
    first.kill();
    node.delete_budget();
    ends_well(&node, Trigger::Event).await;
    assert_eq!(node.evictions()["free"], [Some(201)]);
}

/// An outage that is too long to keep the lease.
#[tokio::test]
async fn an_api_server_that_is_restarted_in_mid_drain() {
    for trigger in [Trigger::Event, Trigger::Cordon] {
        let node = node(trigger).await;
        let server = node.api.url();
        let gate = Gate::to(server.trim_start_matches("http://").to_owned()).await;
        let kubeconfig = std::fs::read_to_string(node.kubeconfig()).unwrap();
        let through = kubeconfig.replace(&server, &format!("http://{}", gate.address));
        std::fs::write(node.kubeconfig(), through).unwrap();
        let driver = node.claimer(&[]).await;
        begin(&node, trigger).await;
        gate.close();
        node.until("the driver cannot be sure of its lease", || {
            driver.log().contains("the node's Lease could not be renewed")
        })
        .await;
        let evictions = node.evictions();
        node.delete_budget();
        assert_eq!(node.evictions(), evictions);
        gate.open();
        ends_well(&node, trigger).await;
        assert_eq!(node.evictions()["free"], [Some(201)]);
    }
}
