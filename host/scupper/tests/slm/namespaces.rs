//! namespace-modes.wasm with the real driver: each pod leaves as the rule for its namespace says.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::objects::{closed_budget, pod};
use crate::policies;
use crate::rig::{DRIVER, Rig};

const TIMEOUT: Duration = Duration::from_secs(4);

fn pod_in(namespace: &str, name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

/// The number of requests to the API server with this method and the path of this pod.
fn requests(rig: &Rig, method: &str, pod: &str, subresource: &str) -> usize {
    let requests = rig.api.requests().into_iter();
    let of_pod = requests.filter(|it| it.path.contains(&format!("/pods/{pod}")));
    of_pod
        .filter(|it| it.method == method && it.subresource == subresource)
        .count()
}

#[tokio::test]
async fn one_namespace_is_waited_for_and_another_is_deleted_after_its_timeout() {
    let rig = Rig::start().await;
    rig.apply(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "dev", "labels": {"example.com/tier": "dev"}}}));
    rig.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "batch"}}));
    rig.pods(&["cart"]);
    rig.apply(pod_in("batch", "train"));
    rig.apply(pod_in("dev", "notebook"));
    let mut budget = closed_budget();
    budget["metadata"]["namespace"] = json!("dev");
    rig.apply(budget);

    let rules = format!(
        "namespace-modes.rules=batch AllowCompletion 1h, example.com/tier=dev DeleteAfterTimeout {}s grace 1s",
        TIMEOUT.as_secs()
    );
    let policy = policies::argument("namespace-modes");
    let driver = rig
        .driver(&[
            "--policy",
            &policy,
            "--policy-config",
            &rules,
            "--grant",
            "namespace-modes=facts:namespaces",
        ])
        .await;
    let begun = Instant::now();
    rig.event("drain", DRIVER);
    let remaining = || {
        let mut names = rig.pod_names();
        names.sort();
        names
    };
    rig.until(
        "the pod of the default namespace and that of dev are gone",
        || remaining() == ["train"],
    )
    .await;
    assert!(begun.elapsed() >= TIMEOUT, "too early:\n{}", driver.output());
    assert_eq!(requests(&rig, "DELETE", "notebook", ""), 1, "{}", driver.output());
    assert_eq!(requests(&rig, "POST", "notebook", "eviction"), 0);
    rig.until("the drain waits for the pod of batch", || {
        driver.output().contains("waits for batch/train: still runs")
    })
    .await;
    assert_eq!(requests(&rig, "POST", "train", "eviction"), 0);

    let ends = |pod: &mut Value| pod["status"]["phase"] = json!("Succeeded");
    rig.api.store().edit("pods", "batch", "train", ends).unwrap();
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
    assert!(
        begun.elapsed() < Duration::from_secs(3600),
        "it waited for the cap"
    );
}
