//! Scupper on a real kubelet with real containers: registration, and a whole drain.
//!
//! Needs root, and builds its cluster with `host/testbeds/kubelet/real-kubelet` (minutes the first time, seconds then).
//! On a machine that cannot run it the test fails and names the missing feature; `SCUPPER_SKIP=real-kubelet` skips it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests; a failure is a failed test"
)]

#[path = "../slm/driver.rs"]
#[expect(dead_code, reason = "the SLM suite kills and freezes drivers as well")]
mod driver;
mod installed;
#[path = "../support/limit.rs"]
mod limit;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/skip.rs"]
mod skip;
mod testbed;
mod workload;

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use scupper_simulator::kubelet::{Kubelet, Options, Timing};
use serde_json::json;

use crate::driver::Driver;
use crate::testbed::{NODE, Testbed};
use crate::workload::Workload;

const DRIVER: &str = "drain.example";

#[tokio::test]
async fn a_kubelet_that_does_not_know_slm_is_named() {
    let Some(testbed) = Testbed::up("registration") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&testbed, &testbed.kubelet_root());
    let mut driver = Driver::spawn(folder.path(), 1, &arguments);
    let refusal = "no handler registered for plugin type: SLMPlugin at socket";
    testbed::until(
        Duration::from_secs(30),
        "the driver names the kubelet's refusal",
        async || {
            assert!(driver.is_running(), "it ended:\n{}", driver.log());
            driver.log().contains(refusal) || driver.output().contains(refusal)
        },
    )
    .await;
}

#[tokio::test]
async fn a_node_with_twenty_containers_is_drained() {
    let Some(testbed) = Testbed::up("drain") else {
        return;
    };
    let client = testbed.client().await;
    let workload = Workload::start(&testbed, &client).await;

    // The kubelet of the testbed runs the containers; the one that speaks SLM stands beside it, with its own root.
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(client.clone(), NODE, folder.path().join("kubelet"));
    options.timing = Timing {
        pass_pause: Duration::from_secs(1),
        ..Timing::default()
    };
    let events: Api<DynamicObject> = Api::all_with(client.clone(), &options.events);
    let kind = options.events.clone();
    let kubelet = Kubelet::start(options).unwrap();
    let driver = Driver::spawn(folder.path(), 1, &arguments(&testbed, kubelet.root()));
    let registered = || kubelet.registered().contains_key(DRIVER);
    kubelet
        .wait_for(|_| registered(), Duration::from_secs(30))
        .await
        .unwrap();

    let spec = json!({"spec": {"transitionName": DRIVER, "bindingNode": NODE}});
    let event = DynamicObject::new("drain-real-0", &kind).data(spec);
    testbed::until(
        Duration::from_secs(30),
        "the transition is published",
        async || kubelet.record().entries().len() > 1 && testbed.has_transition(DRIVER),
    )
    .await;
    events.create(&PostParams::default(), &event).await.unwrap();
    let ended = kubelet
        .wait_for(|record| !record.finished().is_empty(), Duration::from_secs(120))
        .await;
    ended.unwrap_or_else(|why| panic!("{why}\nthe driver printed:\n{}", driver.output()));
    assert_eq!(
        kubelet.record().finished(),
        [("drain-real-0".to_owned(), "Succeeded".to_owned())]
    );
    assert_eq!(kubelet.record().reasons(), ["drain-started", "drain-complete"]);

    workload.check_drained(&client).await;
    let node: Node = Api::all(client).get(NODE).await.unwrap();
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), Some(true));
}

fn arguments(testbed: &Testbed, root: &std::path::Path) -> Vec<String> {
    let kubeconfig = testbed.kubeconfig();
    let pairs = [
        ("--driver-name", DRIVER.to_owned()),
        ("--node-name", NODE.to_owned()),
        ("--kubelet-root", root.to_str().unwrap().to_owned()),
        ("--kubeconfig", kubeconfig.to_str().unwrap().to_owned()),
        ("--sla", "3m".to_owned()),
    ];
    pairs
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect()
}
