//! Diagnosing a drain that does not end: the workload, the budget, its owner, the missing permission.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, asks, until};
use crate::rig::{LIMIT, Rig, Running};

const BUDGETS: &str = "poddisruptionbudgets.policy";
const SET: &str = "cart-7d9f";

/// Three replicas of the Deployment `cart`: two on worker-1, and one on worker-2 that does not become ready.
fn cart(rig: &Rig) {
    let store = |object: Value| rig.apply(object);
    store(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "cart"},
        "spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 2}}),
    );
    for name in ["cart-1", "cart-2"] {
        rig.apply(
            objects::pod("shop", name, "worker-1")
                .owner_replicaset(SET)
                .label("app", "cart"),
        );
    }
    let waiting = json!([{"name": "main", "ready": false, "restartCount": 7,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}}]);
    let crashing = objects::pod("shop", "cart-3", "worker-2")
        .owner_replicaset(SET)
        .label("app", "cart")
        .unready()
        .with("/status/containerStatuses", waiting);
    rig.apply(crashing);
    // After its pods, or it would create others.
    let set: Value = objects::replica_set("shop", SET, 3).build();
    store(with_owner(set, "apps/v1", "Deployment", "cart"));
    let mut budget = objects::budget("shop", "keep-cart", &[("app", "cart")], 2);
    budget["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "shop-front"});
    rig.apply(budget);
    until("the budget is counted", || {
        let budgets = rig.objects(BUDGETS);
        budgets[0]["status"]["currentHealthy"] == 2
    });
}

fn with_owner(mut object: Value, version: &str, kind: &str, name: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": version, "kind": kind, "name": name,
        "uid": "6f3a2f0e-7c0e-4f3b-9d0a-000000000001", "controller": true}]);
    object
}

/// A drain of worker-1 that reports why it waits.
fn blocked(rig: &Rig, pod: &str) -> Running {
    let mut drain = rig.start(&["drain", "worker-1", "--local"]);
    drain.prints(&format!("waits    {pod}"));
    drain
}

fn people(rig: &Rig) -> String {
    let run = rig.run(&["status", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    run.stdout
}

fn machines(rig: &Rig) -> Value {
    let run = rig.run(&["status", "worker-1", "--output", "json"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[track_caller]
fn has_all(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is missing: {text}");
    }
}

#[test]
fn status_names_the_workload_the_budgets_owner_and_the_replica_that_is_not_ready() {
    let rig = Rig::new();
    cart(&rig);
    let _drain = blocked(&rig, "shop/cart-1");
    let text = people(&rig);
    let expected = [
        "budget shop/keep-cart blocks 2 pods: it needs 2 healthy pods and has 2",
        "owner: Helm release shop-front",
        "not ready: shop/cart-3 on worker-2",
        "CrashLoopBackOff",
        "Deployment cart, 2 of 3 ready",
    ];
    has_all(&text, &expected);
    assert_eq!(
        text.matches("next: kubectl -n shop describe pdb keep-cart")
            .count(),
        1,
        "once for the group: {text}"
    );
    let json = machines(&rig);
    let budget = &json["budgets"][0];
    assert_eq!(
        json!([
            budget["name"],
            budget["allowed"],
            budget["owner"],
            budget["pods"],
            budget["notReady"][0]["pod"]
        ]),
        json!([
            "keep-cart",
            0,
            "Helm release shop-front",
            ["shop/cart-1", "shop/cart-2"],
            "shop/cart-3"
        ]),
        "{json}"
    );
    assert_eq!(
        json["pods"][0]["workload"],
        json!({"kind": "Deployment", "name": "cart", "ready": 2, "wanted": 3})
    );
}

/// A user who may read only the node and its pods sees those, and which permission the rest needs.
#[test]
fn status_names_what_it_may_not_read() {
    let rig = Rig::new();
    cart(&rig);
    let _drain = blocked(&rig, "shop/cart-1");
    let fault = scupper_simulator::api::Fault::new(scupper_simulator::api::Action::Status(403, None))
        .path("/apis/apps/v1/namespaces/*");
    rig.api.faults([fault]);
    let text = people(&rig);
    has_all(
        &text,
        &[
            "budget shop/keep-cart blocks 2 pods",
            "not shown: ",
            "get replicaset",
        ],
    );
}

#[test]
fn status_says_since_when_a_budget_blocks_a_pod_also_after_a_takeover() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let drain = blocked(&rig, "shop/db");
    let since = |what: &str| {
        let begun = Instant::now();
        loop {
            let json = machines(&rig);
            if let (true, Some(since)) = (json["driver"]["fresh"] == true, json["pods"][0]["since"].as_str())
            {
                return since.to_owned();
            }
            assert!(begun.elapsed() < LIMIT, "{what}: {json}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let first = since("the first process says since when");
    drain.kill();
    let taken = rig.node("worker-1")["metadata"]["annotations"]["scupper.dev/drain-status"].clone();
    let _next = rig.start(&["drain", "worker-1", "--local", "--take-over"]);
    until("the next process writes its own status", || {
        let now = rig.node("worker-1")["metadata"]["annotations"]["scupper.dev/drain-status"].clone();
        now.is_string() && now != taken
    });
    assert_eq!(since("the next process says since when"), first);
    has_all(&people(&rig), &["BudgetExhausted", " for "]);
}

#[test]
fn status_names_both_budgets_that_select_a_pod() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.budget("also-db", "db");
    let _drain = blocked(&rig, "shop/db");
    until("the driver has published its status", || {
        machines(&rig)["driver"]["fresh"] == true
    });
    let json = machines(&rig);
    assert_eq!(json["pods"][0]["source"], "driver", "{json}");
    let text = people(&rig);
    has_all(&text, &["MoreThanOneBudget", "also-db and keep-db"]);
}

/// The API server charges the eviction to the budget before it deletes the pod: a request that is cut off between the
/// two blocks the budget for two minutes.
#[test]
fn status_explains_an_eviction_that_was_granted_and_cut_off() {
    let rig = Rig::new();
    for name in ["db-0", "db-1"] {
        rig.apply(rig.pod(name, "worker-1").label("app", "db"));
    }
    rig.apply(objects::budget("shop", "keep-db", &[("app", "db")], 1));
    until("the budget is counted", || {
        rig.objects(BUDGETS)[0]["status"]["currentHealthy"] == 2
    });
    let now = rig.objects(BUDGETS)[0]["metadata"]["creationTimestamp"].clone();
    let granted = |budget: &mut Value| budget["status"]["disruptedPods"] = json!({ "db-0": now });
    rig.inside(|| rig.api.store().edit(BUDGETS, "shop", "keep-db", granted))
        .unwrap();
    until("the controller counts it as evicted", || {
        rig.objects(BUDGETS)[0]["status"]["disruptionsAllowed"] == 0
    });
    let _drain = blocked(&rig, "shop/db-1");
    // An eviction granted a moment ago may still be in flight.
    until("it is old enough", || {
        people(&rig).contains("shop/db-0: its eviction was granted")
    });
    let text = people(&rig);
    let expected = [
        "shop/db-0: its eviction was granted",
        "but the pod was never deleted",
        "the budget counts it as evicted for another ",
    ];
    has_all(&text, &expected);
}

#[test]
fn plan_shows_which_budgets_cover_the_pods_and_whether_they_allow_it_now() {
    let rig = Rig::new();
    cart(&rig);
    rig.apply(rig.pod("free", "worker-1"));
    rig.apply(objects::budget("shop", "keep-free", &[("app", "free")], 0));
    rig.apply(rig.pod("two", "worker-1"));
    rig.budget("one", "two");
    rig.budget("other", "two");
    let run = rig.run(&["plan", "worker-1"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let expected = [
        "budget shop/keep-cart blocks 2 of these pods now: it needs 2 healthy pods and has 2",
        "budget shop/keep-free covers 1 of these pods and allows 1 eviction now",
        "shop/two is covered by 2 budgets (one, other); the API server refuses its eviction until only one is left",
    ];
    has_all(&run.stdout, &expected);
    let run = rig.run(&["plan", "worker-1", "--output", "json"]);
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let budgets = plan["budgets"].as_array().unwrap();
    let named: Vec<_> = budgets.iter().map(|it| (&it["name"], &it["allowed"])).collect();
    assert_eq!(
        json!(named),
        json!([["keep-cart", 0], ["keep-free", 1], ["one", 0], ["other", 0]])
    );
    assert_eq!(
        budgets[0]["pods"],
        json!(["shop/cart-1", "shop/cart-2"]),
        "{plan}"
    );
}

/// The terminal that follows a drain names each pod that remained when it failed.
#[test]
fn a_follower_of_a_failed_drain_reads_of_every_pod_that_made_it_fail() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        for name in ["long", "longer"] {
            rig.apply(rig.pod(name, "worker-1").stuck().grace(600));
        }
        let run = rig.run(&asks("drain", &["--timeout", "5s"]));
        assert_eq!(run.code, Some(6), "{run:#?}");
        for pod in ["shop/long:", "shop/longer:"] {
            let waits = |line: &&str| line.contains("  waits    ") && line.contains(pod);
            assert_eq!(run.stdout.lines().filter(waits).count(), 1, "{pod} {run:#?}");
        }
    }
}

/// Its grace period ends without a change that a watch could show.
#[test]
fn a_follower_reads_when_a_pod_outlives_its_grace_period() {
    let rig = Rig::new();
    let agent = Agent::start(&rig, false);
    rig.apply(rig.pod("held", "worker-1").grace(1).finalizer("example.com/hold"));
    let mut drain = rig.start(&asks("drain", &[]));
    drain.prints("Claimed");
    until("the pod is being deleted", || {
        rig.objects("pods")[0]["metadata"]["deletionTimestamp"].is_string()
    });
    // The driver's later status is not needed for it.
    agent.driver.signal(Signal::STOP);
    until("the follower names the pod and for how long it is late", || {
        drain.stdout().lines().any(|line| {
            line.contains("waits    shop/held: still terminating ")
                && line.ends_with("s after its grace period; finalizers: example.com/hold")
        })
    });
    drain.signal(Signal::INT);
    assert_eq!(drain.ended().code, Some(9));
}

/// Its `drain-started` would make the next reader believe that the node is being drained.
#[test]
fn a_failed_drain_leaves_no_drain_started_reason() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("stuck", "worker-1").stuck());
    let run = rig.run(&asks("drain", &["--timeout", "3s"]));
    assert_eq!(run.code, Some(6), "{run:#?}");
    until("the event is gone", || {
        rig.objects("lifecycleevents.lifecycle.k8s.io").is_empty()
    });
    let node = rig.node("worker-1");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let transition = conditions
        .iter()
        .find(|it| it["type"] == "LifecycleTransition")
        .unwrap();
    assert_eq!(transition["reason"], "", "{node}");
}

/// The node and its budget show the blocker, and both remove it afterwards.
#[test]
fn a_blocked_drain_is_reported_on_the_node_and_on_the_budget() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let drain = blocked(&rig, "shop/db");
    let condition = || {
        let node = rig.node("worker-1");
        let conditions = node["status"]["conditions"].as_array().unwrap().clone();
        let found = conditions.into_iter().find(|it| it["type"] == "DrainInProgress");
        found.unwrap_or_default()
    };
    until("the condition says what blocks it", || {
        let message = condition()["message"].as_str().unwrap_or_default().to_owned();
        message.ends_with("is waiting for: budget shop/keep-db (1 pod)")
    });
    assert_eq!(
        (&condition()["status"], &condition()["reason"]),
        (&json!("True"), &json!("DrainStarted"))
    );
    let on_budget = || {
        let events = rig.objects("events.events.k8s.io").into_iter();
        let about = events.filter(|it| it["regarding"]["kind"] == "PodDisruptionBudget");
        about.collect::<Vec<_>>()
    };
    until("an Event is on the budget", || !on_budget().is_empty());
    let events = on_budget();
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(
        (
            &events[0]["regarding"]["name"],
            &events[0]["reason"],
            &events[0]["related"]["name"]
        ),
        (&json!("keep-db"), &json!("BudgetExhausted"), &json!("db")),
        "{events:#?}"
    );
    rig.api.store().delete(BUDGETS, "shop", "keep-db").unwrap();
    assert_eq!(drain.ended().code, Some(0));
    assert_eq!(condition()["status"], "False");
}
