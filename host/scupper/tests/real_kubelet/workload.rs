//! Twenty real pods of every kind, and a second node that takes the evicted pods.
//!
//! The second node is an object only: this file plays its kubelet and reports its pods as running.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::testbed::{NODE, Testbed, until};

const OTHER: &str = "real-1";
/// Six behind a budget, four that ignore SIGTERM, eight plain ones: they are evicted.
const LEAVING: usize = 18;
/// One of a DaemonSet and one of the kubelet's own manifests: they are kept.
const STAYING: usize = 2;
const ENDS_AT_ONCE: &str = "trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done";
const IGNORES_TERM: &str = "trap '' TERM; while true; do sleep 1; done";
/// The number of pods that the budget allows to be missing.
const AWAY: i32 = 2;

pub(crate) struct Workload {
    leaving: BTreeSet<String>,
    staying: BTreeSet<String>,
    players: JoinSet<()>,
}

impl Workload {
    pub(crate) async fn start(testbed: &Testbed, client: &Client) -> Self {
        testbed.apply("workload", &workload().to_string());
        let (manifests, beside) = testbed.manifests();
        let written = beside.join("static.yaml");
        fs::write(&written, static_pod().to_string()).unwrap();
        fs::rename(written, manifests.join("static.yaml")).unwrap();
        let pods: Api<Pod> = Api::all(client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={NODE}"));
        until(Duration::from_secs(90), "all pods run", async || {
            let running = pods
                .list(&here)
                .await
                .unwrap()
                .into_iter()
                .filter(is_ready)
                .count();
            running == LEAVING + STAYING
        })
        .await;
        let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
        until(
            Duration::from_secs(30),
            "the budget has counted its pods",
            async || {
                budgets
                    .get("web")
                    .await
                    .unwrap()
                    .status
                    .is_some_and(|status| status.disruptions_allowed == Some(AWAY))
            },
        )
        .await;
        let (stay, leave): (Vec<Pod>, Vec<Pod>) =
            pods.list(&here).await.unwrap().into_iter().partition(|pod| {
                let name = pod.name_any();
                name.starts_with("agent-") || name.starts_with("static-")
            });
        let uids = |pods: Vec<Pod>| pods.iter().filter_map(ResourceExt::uid).collect::<BTreeSet<_>>();
        let mut players = JoinSet::new();
        other_node(client).await;
        players.spawn(play_other_node(client.clone()));
        players.spawn(watch_budget(budgets));
        let workload = Self {
            leaving: uids(leave),
            staying: uids(stay),
            players,
        };
        assert_eq!(
            (workload.leaving.len(), workload.staying.len()),
            (LEAVING, STAYING)
        );
        workload
    }

    /// All pods to be evicted are gone, and the kept ones are unchanged.
    pub(crate) async fn check_drained(mut self, client: &Client) {
        if let Some(ended) = self.players.try_join_next() {
            ended.expect("the second node and the budget are played to the end");
        }
        let here = ListParams::default().fields(&format!("spec.nodeName={NODE}"));
        let pods = Api::<Pod>::all(client.clone()).list(&here).await.unwrap();
        let there: BTreeSet<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        let names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        assert!(there.is_disjoint(&self.leaving), "still there: {names:?}");
        assert!(there.is_superset(&self.staying), "only these stayed: {names:?}");
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .clone()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn workload() -> Value {
    let mut items = vec![
        deployment("web", 6, ENDS_AT_ONCE, 30),
        deployment("stubborn", 4, IGNORES_TERM, 5),
        deployment("plain", 8, ENDS_AT_ONCE, 30),
    ];
    items.push(
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": AWAY, "selector": {"matchLabels": {"app": "web"}}}}),
    );
    items.push(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", ENDS_AT_ONCE, 5)}}));
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn deployment(name: &str, replicas: usize, script: &str, grace: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                 "template": template(name, script, grace)}})
}

fn template(name: &str, script: &str, grace: u32) -> Value {
    json!({"metadata": {"labels": {"app": name}}, "spec": pod_spec(script, grace)})
}

fn static_pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static"}, "spec": pod_spec(ENDS_AT_ONCE, 5)})
}

fn pod_spec(script: &str, grace: u32) -> Value {
    json!({"terminationGracePeriodSeconds": grace, "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                        "command": ["sh", "-c", script]}]})
}

async fn other_node(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": OTHER}});
    nodes
        .create(&PostParams::default(), &serde_json::from_value(node).unwrap())
        .await
        .unwrap();
    let room = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Played", "lastHeartbeatTime": null}]);
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": ready}});
    nodes
        .patch_status(OTHER, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    // The controller removes the taint of a new node once it has seen it ready.
}

/// Reports each pod on the other node as running and ready.
async fn play_other_node(client: Client) {
    let pods: Api<Pod> = Api::default_namespaced(client);
    let there = watcher::Config::default().fields(&format!("spec.nodeName={OTHER}"));
    let mut stream = watcher(pods.clone(), there).boxed();
    while let Ok(Some(event)) = stream.try_next().await {
        let (watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else {
            continue;
        };
        if is_ready(&pod) {
            continue;
        }
        let ready =
            json!([{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "conditions": ready}});
        // A pod that went in between needs no status.
        pods.patch_status(
            &pod.name_any(),
            &PatchParams::default(),
            &Patch::Strategic(status),
        )
        .await
        .ok();
    }
}

/// The budget is never overdrawn.
async fn watch_budget(budgets: Api<PodDisruptionBudget>) {
    let mut stream = watcher(budgets, watcher::Config::default()).boxed();
    while let Ok(Some(event)) = stream.try_next().await {
        if let watcher::Event::Apply(budget) | watcher::Event::InitApply(budget) = event {
            let status = budget.status.unwrap_or_default();
            assert!(
                status.current_healthy >= status.desired_healthy,
                "the budget was overdrawn: {status:?}"
            );
        }
    }
}
