//! What policies learn about volumes of pods, and what the host reads for it.

use std::sync::Arc;

use scupper_api::facts::{PodSpec, PodVolume};
use scupper_engine::{Pod, Time};
use scupper_policy::DrainFacts;

use crate::facts::{asked, asks, learned, load};
use crate::support::{FakeCluster, pod};

/// A cluster in which these pods have these volumes: a kind, or the name of a claim.
fn mounting<const N: usize>(volumes: [(usize, &[&str]); N]) -> Arc<FakeCluster> {
    let volume = |name: &str| {
        let is_claim = name.contains('-');
        PodVolume {
            name: format!("v{}", name.len()),
            kind: if is_claim { "persistentVolumeClaim" } else { name }.to_owned(),
            claim: is_claim.then(|| name.to_owned()),
        }
    };
    let spec = |names: &[&str]| PodSpec {
        volumes: names.iter().map(|name| volume(name)).collect(),
        ..PodSpec::default()
    };
    let specs = volumes.map(|(number, names)| (pod(number).id.uid, spec(names)));
    Arc::new(FakeCluster {
        specs: specs.into(),
        ..FakeCluster::default()
    })
}

#[tokio::test]
async fn a_planner_learns_of_volumes_and_of_where_they_are() {
    let cluster = mounting([
        (
            1,
            &["emptyDir", "hostPath", "csi", "configMap", "data-0", "local-0"],
        ),
        (2, &["pending-0", "gone-0", "lost-0"]),
    ]);
    let policies = load(&[asks("volumes\nvolumes")], &cluster).await.unwrap();
    let first = [
        "v8 emptyDir node-local",
        "v8 hostPath node-local",
        "v3 csi node-local",
        "v9 configMap",
        r#"v6 persistentVolumeClaim data-0="pv-data-0" "csi" fast ReadWriteOnce ["node-1", "node-2"]"#,
        r#"v7 persistentVolumeClaim node-local local-0="pv-local-0" "local" fast ReadWriteOnce []"#,
    ];
    let second = [
        r#"v9 persistentVolumeClaim pending-0="" "" fast ReadWriteOnce []"#,
        r#"v6 persistentVolumeClaim gone-0="" ""   []"#,
        r#"v6 persistentVolumeClaim lost-0="pv-lost-0" "" fast ReadWriteOnce []"#,
    ];
    // The third is gone.
    let once = format!("{}; {}; ", first.join(", "), second.join(", "));
    let pods = [pod(1), pod(2), pod(3)];
    assert_eq!(learned(&policies, &pods, None).await, format!("{once}; {once}"));
    assert_eq!(
        asked(&cluster),
        [
            "pods of node-1",
            "volume claims of shop",
            "volume pv-data-0",
            "attachments",
            "volume pv-local-0",
            "volume pv-lost-0",
        ]
    );
}

#[tokio::test]
async fn few_claims_are_read_one_by_one_and_many_volumes_in_one_list() {
    let cluster = mounting([(1, &["local-1"]), (2, &["local-2", "local-3"])]);
    let policies = load(&[asks("volumes")], &cluster).await.unwrap();
    let _reported = learned(&policies, &[pod(1), pod(2)], None).await;
    // Local volumes are never attached.
    assert_eq!(
        asked(&cluster),
        [
            "pods of node-1",
            "volume claim shop/local-1",
            "volume pv-local-1",
            "volume claim shop/local-2",
            "volume pv-local-2",
            "volume claim shop/local-3",
            "volume pv-local-3",
        ]
    );
    let cluster = mounting([
        (1, &["data-0", "data-1", "data-2", "data-3"]),
        (2, &["data-4", "local-0"]),
    ]);
    let policies = load(&[asks("volumes")], &cluster).await.unwrap();
    let reported = learned(&policies, &[pod(1), pod(2)], None).await;
    assert_eq!(reported.matches("\"csi\"").count(), 5, "{reported}");
    assert_eq!(reported.matches("node-local").count(), 1, "{reported}");
    assert_eq!(
        asked(&cluster),
        [
            "pods of node-1",
            "volume claims of shop",
            "volumes",
            "attachments"
        ]
    );
    let cluster = mounting([(1, &["emptyDir"])]);
    let policies = load(&[asks("volumes")], &cluster).await.unwrap();
    assert_eq!(
        learned(&policies, &[pod(1)], None).await,
        "v8 emptyDir node-local"
    );
    assert_eq!(asked(&cluster), ["pods of node-1"]);
}

#[tokio::test]
async fn the_next_plans_of_a_minute_read_only_what_may_have_changed() {
    let cluster = mounting([(1, &["data-0", "pending-1"]), (2, &["data-0"])]);
    let policies = load(&[asks("volumes")], &cluster).await.unwrap();
    let mut facts = DrainFacts::default();
    let mut plan = async |chain, now, pods: &[Pod]| {
        let facts = facts.of_plan(chain, Time::from_millis(now));
        let first = learned(&policies, pods, Some(&facts)).await;
        assert_eq!(learned(&policies, pods, Some(&facts)).await, first);
        asked(&cluster)
    };
    let all = [
        "pods of node-1",
        "volume claim shop/data-0",
        "volume pv-data-0",
        "attachments",
        "volume claim shop/pending-1",
    ];
    assert_eq!(plan(1, 1_000, &[pod(1)]).await, all);
    assert_eq!(
        plan(2, 60_999, &[pod(1)]).await,
        ["attachments", "volume claim shop/pending-1"]
    );
    assert_eq!(plan(3, 60_999, &[pod(2)]).await, ["attachments"]);
    assert_eq!(plan(4, 130_000, &[pod(1)]).await, all);
}

#[tokio::test]
async fn resources_and_volumes_share_the_list_of_pods() {
    let cluster = mounting([(1, &["emptyDir"])]);
    let policies = load(&[asks("resources\nvolumes")], &cluster).await.unwrap();
    assert_eq!(
        learned(&policies, &[pod(1)], None).await,
        "; v8 emptyDir node-local"
    );
    assert_eq!(asked(&cluster), ["pods of node-1"]);
}
