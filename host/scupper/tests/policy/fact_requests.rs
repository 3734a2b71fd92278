//! What policies learn about the DrainRequests that their drain serves.

use std::sync::Arc;

use scupper_api::{DrainRequestFields, Entity};
use scupper_engine::{PlanAnswer, Time};
use scupper_policy::{DrainInfo, Facts, PlanCall, Policies};

use crate::facts::{asked, asks, load};
use crate::support::{FakeCluster, draft, drain, node};

fn entries(key: &str, value: &str) -> std::collections::BTreeMap<String, String> {
    [(key.to_owned(), value.to_owned())].into()
}

fn request() -> DrainRequestFields {
    let text = str::to_owned;
    let entity = |kind: &str, value: &str| Entity {
        kind: text(kind),
        value: text(value),
    };
    DrainRequestFields {
        namespace: text("nvsentinel"),
        name: text("drain-a"),
        uid: text("u"),
        labels: entries("team", "ml"),
        annotations: entries("by", "hand"),
        created: Some(Time::from_millis(7)),
        check_name: text("GpuXidError"),
        error_codes: vec![text("48"), text("79")],
        recommended_action: text("COMPONENT_RESET"),
        health_event_id: text("68a1"),
        reason: text("XID"),
        entities: [entity("GPU_UUID", "GPU-1"), entity("GPU", "0")].into(),
        metadata: entries("rack", "r1"),
        pods_to_drain: [(text("shop"), [text("cart"), text("web")].into())].into(),
    }
}

fn cluster(requests: Vec<DrainRequestFields>) -> Arc<FakeCluster> {
    Arc::new(FakeCluster {
        drain_requests: requests.into_iter().map(Arc::new).collect(),
        ..FakeCluster::default()
    })
}

/// What a planner learns in a drain by this trigger.
async fn learned(policies: &Policies, trigger: &str, facts: Option<&Arc<Facts>>) -> String {
    let (node, draft) = (node(), draft(&[]));
    let call = PlanCall {
        policy: "p",
        drain: DrainInfo {
            trigger,
            facts,
            ..drain()
        },
        node: &node,
        pods: &[],
        draft: &draft,
    };
    match policies.plan(call).await {
        PlanAnswer::Refused { message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_planner_learns_every_field_and_the_host_asks_once() {
    let cluster = cluster(vec![request(), DrainRequestFields::default()]);
    let policies = load(&[asks("drain-requests\ndrain-requests")], &cluster)
        .await
        .unwrap();
    let once = "nvsentinel/drain-a u [\"team=ml\"] [\"by=hand\"] Some(7) GpuXidError [\"48\", \"79\"] COMPONENT_RESET \
                68a1 XID [\"GPU:0\", \"GPU_UUID:GPU-1\"] [\"rack=r1\"] [\"shop/cart\", \"shop/web\"], / \u{20}[] [] None  \
                []    [] [] []";
    let reported = learned(&policies, "DrainRequest", None).await;
    assert_eq!(reported, format!("{once}; {once}"));
    assert_eq!(asked(&cluster), ["requests of drain-uid"]);
}

#[tokio::test]
async fn a_drain_by_another_trigger_serves_none_and_nothing_is_asked() {
    let cluster = cluster(vec![request()]);
    let policies = load(&[asks("drain-requests")], &cluster).await.unwrap();
    for trigger in ["LifecycleEvent", "cordon", "command"] {
        assert_eq!(learned(&policies, trigger, None).await, "", "{trigger}");
    }
    assert!(asked(&cluster).is_empty());
}

#[tokio::test]
async fn requests_share_the_limit_of_all_texts() {
    let long = DrainRequestFields {
        pods_to_drain: [(
            "n".repeat(60),
            (0..50_000).map(|it| format!("{it:0>120}")).collect(),
        )]
        .into(),
        ..request()
    };
    let cluster = cluster(vec![long]);
    let policies = load(&[asks("drain-requests")], &cluster).await.unwrap();
    let reported = learned(&policies, "DrainRequest", None).await;
    assert!(reported.contains("8 MiB"), "{reported}");
}
