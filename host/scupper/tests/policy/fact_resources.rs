//! What policies learn about requests and devices of pods, and what the host asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use scupper_api::facts::{PodClaim, PodSpec};
use scupper_engine::{Pod, Time};
use scupper_policy::DrainFacts;

use crate::facts::{asked, asks, learned, load};
use crate::support::{FakeCluster, pod};

/// A cluster in which these pods have these ResourceClaims.
fn claiming<const N: usize>(claims: [(usize, &[&str]); N]) -> Arc<FakeCluster> {
    let spec = |names: &[&str]| PodSpec {
        requests: BTreeMap::from([("nvidia.com/gpu".to_owned(), 1)]),
        claims: names
            .iter()
            .map(|name| PodClaim {
                name: match *name {
                    "gpu-extended" => String::new(),
                    name => format!("own-{name}"),
                },
                claim: Some((*name).to_owned()).filter(|name| name != "unnamed"),
            })
            .collect(),
        ..PodSpec::default()
    };
    let specs = claims.map(|(number, names)| (pod(number).id.uid, spec(names)));
    Arc::new(FakeCluster {
        specs: specs.into(),
        ..FakeCluster::default()
    })
}

fn device(name: &str, uuid: &str) -> String {
    let watches = name.ends_with("-watch");
    let source = if name == "gpu-extended" {
        "ExtendedResourceClaim"
    } else {
        "ResourceClaim"
    };
    format!(r#"DeviceSource::{source}("{name}") gpu.example.com "pool" {name} {watches} {uuid}"#)
}

#[tokio::test]
async fn a_planner_learns_of_requests_and_devices() {
    let cluster = claiming([
        (
            1,
            &[
                "gpu-1",
                "gpu-2-watch",
                "pending-1",
                "gone-1",
                "unnamed",
                "gpu-extended",
            ],
        ),
        (2, &[]),
    ]);
    let policies = load(&[asks("resources\nresources")], &cluster).await.unwrap();
    let annotation = (
        "dgxc.nvidia.com/devices".to_owned(),
        r#"{"devices":{"nvidia.com/gpu":["GPU-7"]}}"#.to_owned(),
    );
    let annotated = Pod {
        annotations: [annotation].into(),
        ..pod(2)
    };
    let claimed = [
        "nvidia.com/gpu=1".to_owned(),
        device("gpu-1", r#"Some("GPU-1")"#),
        device("gpu-2-watch", "None"),
        device("gpu-extended", "None"),
        "pending-1?, gone-1?, own-unnamed?".to_owned(),
    ];
    let all = [
        claimed.join(", "),
        "nvidia.com/gpu=1, DeviceSource::Annotation(\"dgxc.nvidia.com/devices\") nvidia.com/gpu \"\" GPU-7 false None"
            .to_owned(),
        // It is gone.
        String::new(),
    ];
    let (once, pods) = (all.join("; "), [pod(1), annotated, pod(3)]);
    assert_eq!(learned(&policies, &pods, None).await, format!("{once}; {once}"));
    assert_eq!(
        asked(&cluster),
        ["pods of node-1", "claims of shop", "devices of node-1"]
    );
}

#[tokio::test]
async fn few_claims_are_read_one_by_one_and_without_claims_no_devices_are_read() {
    let cluster = claiming([(1, &["gpu-1"]), (2, &["gpu-2"])]);
    let policies = load(&[asks("resources")], &cluster).await.unwrap();
    let _reported = learned(&policies, &[pod(1), pod(2)], None).await;
    assert_eq!(
        asked(&cluster),
        [
            "pods of node-1",
            "claim shop/gpu-1",
            "devices of node-1",
            "claim shop/gpu-2"
        ]
    );
    let cluster = claiming([(1, &[])]);
    let policies = load(&[asks("resources")], &cluster).await.unwrap();
    assert_eq!(learned(&policies, &[pod(1)], None).await, "nvidia.com/gpu=1");
    assert_eq!(asked(&cluster), ["pods of node-1"]);
}

#[tokio::test]
async fn the_next_plans_of_a_minute_read_only_what_was_not_known() {
    let cluster = claiming([(1, &["gpu-1", "pending-1"]), (2, &[])]);
    let policies = load(&[asks("resources")], &cluster).await.unwrap();
    let mut facts = DrainFacts::default();
    let mut plan = async |chain, now, pods: &[Pod]| {
        let facts = facts.of_plan(chain, Time::from_millis(now));
        let first = learned(&policies, pods, Some(&facts)).await;
        assert_eq!(learned(&policies, pods, Some(&facts)).await, first);
        asked(&cluster)
    };
    let all = [
        "pods of node-1",
        "claim shop/gpu-1",
        "claim shop/pending-1",
        "devices of node-1",
    ];
    assert_eq!(plan(1, 1_000, &[pod(1)]).await, all);
    assert_eq!(plan(2, 60_999, &[pod(1)]).await, ["claim shop/pending-1"]);
    assert_eq!(plan(3, 60_999, &[pod(2)]).await, [""; 0]);
    // A pod that the list of then did not have.
    assert_eq!(plan(4, 60_999, &[pod(3)]).await, ["pods of node-1"]);
    assert_eq!(plan(5, 130_000, &[pod(1)]).await, all);
}

#[tokio::test]
async fn claims_of_500_pods_in_500_namespaces_take_three_requests() {
    let scattered = |number: usize| {
        let mut pod = pod(number);
        pod.id.namespace = format!("ns-{number}");
        pod
    };
    let pods: Vec<Pod> = (0..500).map(scattered).collect();
    let claim = |number: usize| PodClaim {
        name: "gpu".to_owned(),
        claim: Some(format!("gpu-{}", number % 9)),
    };
    let specs = pods.iter().enumerate().map(|(number, pod)| {
        let spec = PodSpec {
            claims: vec![claim(number)],
            ..PodSpec::default()
        };
        (pod.id.uid.clone(), spec)
    });
    let cluster = Arc::new(FakeCluster {
        specs: specs.collect(),
        ..FakeCluster::default()
    });
    let policies = load(&[asks("resources")], &cluster).await.unwrap();
    let reported = learned(&policies, &pods, None).await;
    assert!(!reported.contains("one call may"), "{reported}");
    assert_eq!(
        asked(&cluster),
        ["pods of node-1", "all claims", "devices of node-1"]
    );
}
