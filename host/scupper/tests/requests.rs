//! The number of requests of a drain, counted by the simulator.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[expect(dead_code, reason = "other suites list the guests")]
#[path = "support/guests.rs"]
mod guests;
#[path = "support/limit.rs"]
mod limit;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scupper_config::DrainSettings;
use scupper_driver::{KubeletPlugin, KubeletPluginOptions, PoliciesOptions};
use scupper_policy_spec::{FACTS, PolicySpec};
use scupper_simulator::api::{ApiServer, Options, RequestRecord, objects};
use scupper_simulator::kubelet;
use scupper_simulator::kubelet::{Kubelet, KubeletHandle, Timing};
use scupper_triggers::slm::Registration;

use crate::limit::LIMIT;

const PODS: usize = 110;
const NODE: &str = "worker-1";
const DRIVER: &str = "drain.test";

struct Rig {
    api: ApiServer,
    kubelet: KubeletHandle,
    _plugin: KubeletPlugin,
    _dir: tempfile::TempDir,
}

impl Rig {
    async fn set(policies: Vec<PolicySpec>) -> Self {
        let api = ApiServer::start(Options::default()).await.unwrap();
        api.store().apply(objects::node(NODE).build()).unwrap();
        // With it a drain has a lease, which counts.
        api.store().apply(objects::namespace("scupper").build()).unwrap();
        let dir = tempfile::Builder::new().prefix("scupper-").tempdir().unwrap();
        let client = kube::Client::try_from(api.client_config()).unwrap();
        let timing = Timing {
            registry_tick: Duration::from_millis(10),
            ..Timing::faster(100)
        };
        let kubelet = Kubelet::start(kubelet::Options {
            timing,
            ..kubelet::Options::new(client, NODE, dir.path())
        })
        .unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        std::fs::write(&kubeconfig, api.kubeconfig()).unwrap();
        let mut drain = DrainSettings::default();
        drain.engine.filters.force = true;
        let options = KubeletPluginOptions {
            connection: kubeconfig.into(),
            driver_name: DRIVER.to_owned(),
            node_name: NODE.to_owned(),
            kubelet_root: dir.path().to_owned(),
            compiler: Some(PathBuf::from(env!("CARGO_BIN_EXE_scupper"))),
            drain,
            policies: PoliciesOptions {
                policies,
                ..PoliciesOptions::default()
            },
            ..KubeletPluginOptions::default()
        };
        let plugin = KubeletPlugin::start_with_output(options, Arc::new(|| Box::new(std::io::sink())))
            .await
            .unwrap();
        let mut registration = plugin.registration();
        let registered = registration.wait_for(|state| *state == Registration::Registered);
        tokio::time::timeout(LIMIT, registered).await.unwrap().unwrap();
        let stage = Self {
            api,
            kubelet,
            _plugin: plugin,
            _dir: dir,
        };
        stage
            .until(|stage| {
                stage
                    .api
                    .store()
                    .list("lifecycletransitions.lifecycle.k8s.io")
                    .len()
                    == 2
            })
            .await;
        stage
    }

    /// How many requests a drain needs that began then: besides those of its pods, one each ten seconds for its status, and one to
    /// remove that.
    fn at_most(begun: Instant) -> usize {
        let published = match begun.elapsed().as_secs() / 10 {
            0 => 0,
            times => usize::try_from(times).unwrap() + 1,
        };
        PODS + 11 + published
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let waited = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LIMIT, waited).await.unwrap();
    }

    /// The requests of the driver since then, without renewals of its lease: every ten seconds one, however long a busy
    /// machine takes.
    fn requests(&self, mark: usize, begun: Instant) -> Vec<RequestRecord> {
        let ours = self.api.requests_since(mark).into_iter();
        let ours = ours.filter(|request| request.user_agent.starts_with("scupper"));
        let renews = |request: &RequestRecord| request.method == "PATCH" && request.path.contains("/leases/");
        let (renewals, ours): (Vec<_>, Vec<_>) = ours.partition(renews);
        assert!(
            renewals.len() as u64 <= begun.elapsed().as_secs() / 10,
            "{} renewals",
            renewals.len()
        );
        // On a slow machine the write before the drain's first one is not yet seen by then: that one is repeated.
        let conflicts = |request: &RequestRecord| request.status == Some(409);
        let (conflicts, ours): (Vec<_>, Vec<_>) = ours.into_iter().partition(conflicts);
        assert!(conflicts.len() <= 1, "{conflicts:#?}");
        // On a slow machine the driver reads the node for its start only now; a drain reads it once it has the Lease.
        let leased = ours.iter().position(|request| request.path.ends_with("/leases"));
        let late = |at: usize, request: &RequestRecord| {
            leased.is_some_and(|leased| at < leased) && request.path.ends_with(NODE)
        };
        let ours = ours.into_iter().enumerate();
        let ours = ours.filter(|(at, request)| !late(*at, request));
        let ours = ours.map(|(_, request)| request);
        ours.collect()
    }

    async fn event(&self, name: &str, transition: &str) {
        self.api
            .store()
            .apply(objects::lifecycle_event(name, transition, NODE).build())
            .unwrap();
        let ended = |record: &kubelet::Record| record.finished().iter().any(|(event, _)| event == name);
        self.kubelet.wait_for(ended, LIMIT).await.unwrap();
        let finished = self.kubelet.record().finished();
        assert!(
            finished.contains(&(name.to_owned(), "Succeeded".to_owned())),
            "{finished:?}"
        );
    }
}

/// All but the evictions, a line each.
fn lines_of(requests: &[RequestRecord]) -> String {
    let others = requests
        .iter()
        .filter(|request| request.subresource != "eviction");
    let line = |request: &RequestRecord| {
        let RequestRecord {
            time,
            method,
            path,
            query,
            status,
            ..
        } = request;
        format!("\n{time} {method} {path}?{query} {status:?}")
    };
    others.map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_of_110_pods_takes_at_most_11_requests_more_than_pods() {
    let stage = Rig::set(Vec::new()).await;
    for takes in [0.0, 2.0] {
        for number in 0..PODS {
            let pod = objects::pod("shop", &format!("pod-{number}"), NODE).takes(takes);
            stage.api.store().apply(pod.build()).unwrap();
        }
        let (mark, begun) = (stage.api.mark(), Instant::now());
        stage.event(&format!("drain-{takes}"), DRIVER).await;
        let ours = stage.requests(mark, begun);
        let requests = ours.len();
        assert!(
            requests <= Rig::at_most(begun),
            "{requests} requests: {}",
            lines_of(&ours)
        );
        let evictions = ours
            .iter()
            .filter(|request| request.subresource == "eviction")
            .count();
        assert_eq!(evictions, PODS, "each pod is evicted once");
        let of_lease = ours.iter().filter(|request| request.path.contains("/leases"));
        let of_lease: Vec<_> = of_lease.map(|request| request.method.as_str()).collect();
        assert_eq!(
            (of_lease.first(), of_lease.last()),
            (Some(&"POST"), Some(&"DELETE"))
        );
        assert!(stage.api.store().list("pods").is_empty());
        stage
            .event(&format!("uncordon-{takes}"), &format!("{DRIVER}-uncordon"))
            .await;
    }
}

/// 110 pods of 20 Deployments in four namespaces: the event, four namespaces, all budgets, and for each namespace a list of
/// ReplicaSets and one of Deployments.
#[tokio::test(flavor = "multi_thread")]
async fn what_policies_ask_adds_at_most_15_requests_for_110_pods_of_20_deployments() {
    let ask = (0..4).map(|number| format!("namespace shop-{number}\n"));
    let ask = format!("request\nbudgets\nowners\n{}", ask.collect::<String>());
    let asks = |name: &str| PolicySpec {
        name: name.to_owned(),
        file: guests::guest("asks"),
        grants: FACTS
            .map(|fact| format!("facts:{fact}").parse().unwrap())
            .to_vec(),
        config: [("ask", ask.as_str()), ("then", "go on")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..PolicySpec::default()
    };
    // The second one asks for nothing that the first one has not asked for.
    let stage = Rig::set(vec![asks("first"), asks("second")]).await;
    let store = stage.api.store();
    for number in 0..4 {
        store
            .apply(objects::namespace(&format!("shop-{number}")).build())
            .unwrap();
    }
    for number in 0..20 {
        let (namespace, name) = (format!("shop-{}", number % 4), format!("web-{number}"));
        let deployment = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": name, "uid": name}, "spec": {"replicas": 6}});
        store.apply(deployment).unwrap();
        let owner = serde_json::json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name,
            "controller": true}]);
        // Without replicas: the simulated controller would create pods.
        let set = objects::replica_set(&namespace, &format!("{name}-1"), 0);
        store
            .apply(set.with("/metadata/ownerReferences", owner).build())
            .unwrap();
    }
    for number in 0..PODS {
        let owner = number % 20;
        let pod = objects::pod(&format!("shop-{}", owner % 4), &format!("pod-{number}"), NODE);
        store
            .apply(pod.owner_replicaset(&format!("web-{owner}-1")).takes(0.0).build())
            .unwrap();
    }
    // Both policies ask also in their checks, at the driver's start, and end with this namespace.
    let ends_check = |request: &&RequestRecord| request.path.ends_with("/namespaces/shop-3");
    stage
        .until(|stage| stage.api.requests_since(0).iter().filter(ends_check).count() == 2)
        .await;
    let (mark, begun) = (stage.api.mark(), Instant::now());
    stage.event("drain", DRIVER).await;
    let ours = stage.requests(mark, begun);
    let of_facts = ours.iter().filter(|request| {
        let paths = [
            "/namespaces/shop-",
            "/deployments",
            "/replicasets",
            "/poddisruptionbudgets",
        ];
        request.method == "GET"
            && !request.query.contains("watch=1")
            && (paths.iter().any(|path| request.path.contains(path))
                || request.path.ends_with("/lifecycleevents/drain"))
    });
    let of_facts: Vec<_> = of_facts.map(|request| request.path.as_str()).collect();
    assert_eq!(of_facts.len(), 14, "{of_facts:#?}");
    // Both policies have a hook, whose end is saved.
    let others = ours.len() - of_facts.len();
    assert!(
        others <= Rig::at_most(begun) + 2,
        "{others} others: {}",
        lines_of(&ours)
    );
    println!(
        "{} requests for {PODS} pods of 20 Deployments, {} of them for what policies ask",
        ours.len(),
        of_facts.len()
    );
}

/// Each step of this hook has another state, and each state is saved before the next step: a patch of the node.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_without_pauses_patches_the_node_ten_times_and_then_once_a_second() {
    let hurries = PolicySpec {
        name: "hurries".to_owned(),
        file: guests::guest("hurries"),
        ..PolicySpec::default()
    };
    let stage = Rig::set(vec![hurries]).await;
    let mark = stage.api.mark();
    let patches = || {
        let requests = stage.api.requests_since(mark);
        let node = format!("/api/v1/nodes/{NODE}");
        let ours = requests
            .iter()
            .filter(|request| request.user_agent.starts_with("scupper"));
        // A patch that conflicted with another write of the node is repeated.
        ours.filter(|request| {
            let is_done = request.status == Some(200);
            is_done && request.method == "PATCH" && request.path == node && request.subresource.is_empty()
        })
        .count()
    };
    let begun = Instant::now();
    let event = objects::lifecycle_event("drain", DRIVER, NODE).build();
    stage.api.store().apply(event).unwrap();
    // The cordon, the burst, and five more: a second each.
    stage.until(|_| patches() >= 16).await;
    let elapsed = begun.elapsed();
    let ours = stage.api.requests_since(mark);
    let ours = ours.iter().filter(|request| request.method == "PATCH");
    let ours: Vec<_> = ours
        .map(|it| (it.time, &it.path, &it.subresource, it.status))
        .collect();
    assert!(
        elapsed >= Duration::from_secs(5),
        "it took {elapsed:?}: {ours:#?}"
    );
}
