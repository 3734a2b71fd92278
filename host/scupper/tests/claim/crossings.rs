//! Each trigger of a driver with each option of a drain, all options in one drain: what the deadline forces, volumes, a
//! Deployment that is raised, a chain of two policies, a pod that comes late. `host/ARCHITECTURE.md` has the table of
//! all crossings.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::drain_requests::Site;
use crate::guests::guest;
use crate::objects::pod;
use crate::rig::{DRIVER, NODE};

const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";
const DEPLOYMENTS: &str = "deployments.apps";
const LABEL: &str = "scupper.dev/drain-on-cordon";
/// When the drain ends, and how long before that pods are forced. It must evict by then, or it forces only just before it ends
/// and no longer waits for volumes: the hook takes four seconds, and of an event's time the driver keeps more than ten.
const DEADLINE: &str = "90s";
const WITHIN: &str = "50s";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Event,
    Request,
    /// A DrainRequest of the pods that it names.
    Partial,
    Cordon,
}

impl Trigger {
    fn drain_requests(self) -> Value {
        json!({"timeout": DEADLINE, "partial": self == Self::Partial})
    }

    async fn begin(self, site: &Site) {
        match self {
            Self::Event => {
                site.event("drain", DRIVER);
            }
            Self::Request | Self::Partial => site.create("1", json!({"podsToDrain": named()})).await,
            Self::Cordon => {
                let cordon = |node: &mut Value| {
                    node["metadata"]["labels"] = json!({LABEL: "true"});
                    node["spec"]["unschedulable"] = json!(true);
                };
                site.api.store().edit("nodes", "", NODE, cordon).unwrap();
            }
        }
    }

    async fn succeeds(self, site: &Site) {
        match self {
            Self::Event => assert_eq!(site.end_of("drain").await, "Succeeded"),
            Self::Request | Self::Partial => site.becomes("1", "DrainComplete", "True Drained").await,
            Self::Cordon => {
                site.until("the node is drained", || {
                    site.reason("Drained").as_deref() == Some("DrainCompleted")
                })
                .await;
            }
        }
    }
}

/// What a partial request names: all pods that the node has when it is created.
fn named() -> Value {
    json!({"default": ["a"], "forced": ["held"], "shop": ["web-a-1"]})
}

/// A pod like any other; one that only the deadline removes, with a volume that stays attached for a while; and the only pod of a
/// Deployment whose budget needs it.
fn pods(site: &Site) {
    site.apply(objects::node("worker-2").build());
    for namespace in ["forced", "shop"] {
        site.apply(objects::namespace(namespace).build());
    }
    site.apply(pod("a"));
    let held = objects::pod("forced", "held", NODE).owner_replicaset("held");
    site.apply(held.label("app", "held").claim("data").build());
    site.apply(objects::budget("forced", "held", &[("app", "held")], 1));
    site.apply(objects::persistent_volume("pv-data", "forced", "data").build());
    let attached = objects::volume_attachment("csi-data", NODE, "pv-data");
    site.apply(attached.annotation("testbed/detaches", "never").build());
    let web = objects::pod("shop", "web-a-1", NODE).owner_replicaset("web-a");
    site.apply(web.label("app", "web").build());
    site.apply(objects::deployment("shop", "web", 1).build());
    let set = objects::replica_set("shop", "web-a", 1).owner_deployment("web");
    let set = set.with("/spec/template/metadata/labels", json!({"app": "web"}));
    site.apply(
        set.with("/status", json!({"observedGeneration": 1, "replicas": 1}))
            .build(),
    );
    site.apply(objects::budget("shop", "keep-web", &[("app", "web")], 1));
}

/// What the Deployment's controller does once its replicas are raised.
fn controller_catches_up(site: &Site) {
    let store = site.api.store();
    let sized = |set: &mut Value| {
        set["spec"]["replicas"] = json!(2);
        set["status"]["replicas"] = json!(2);
    };
    store.edit("replicasets.apps", "shop", "web-a", sized).unwrap();
    let observed = |web: &mut Value| {
        let generation = web["metadata"]["generation"].clone();
        web["status"] = json!({"observedGeneration": generation, "replicas": 2, "updatedReplicas": 2});
    };
    store.edit(DEPLOYMENTS, "shop", "web", observed).unwrap();
}

fn web(site: &Site) -> Value {
    site.api.store().get(DEPLOYMENTS, "shop", "web").unwrap()
}

fn is_there(site: &Site, pod: &str) -> bool {
    site.pod_names().iter().any(|name| name == pod)
}

async fn drains_with_all_options(trigger: Trigger) {
    let site = Site::start().await;
    if trigger == Trigger::Cordon {
        let uncordoned = |node: &mut Value| node["spec"]["unschedulable"] = json!(false);
        site.api.store().edit("nodes", "", NODE, uncordoned).unwrap();
    }
    pods(&site);
    let drain = json!({"sla": DEADLINE, "wait-for-volumes": {"at-most": "5m"},
        "at-deadline": {"delete": {"namespaces": ["forced"]}, "grace-period": "1s", "within": WITHIN},
        "surge": {"method": "scale", "timeout": "5m"}});
    let policies = json!([{"name": "first", "module": guest("echo")}, {"name": "second", "module": guest("five_steps")}]);
    let driver = site
        .driver_that_drains(trigger.drain_requests(), policies, drain)
        .await;
    trigger.begin(&site).await;
    site.until("the Deployment is raised", || web(&site)["spec"]["replicas"] == 2)
        .await;
    controller_catches_up(&site);
    site.until("an ordinary pod leaves", || !is_there(&site, "a"))
        .await;
    site.apply(pod("late"));
    site.until("the drain waits for the volume", || {
        driver.output().contains("volumes  waits")
    })
    .await;
    site.api.store().delete(ATTACHMENTS, "", "csi-data").unwrap();
    trigger.succeeds(&site).await;
    let output = driver.output();
    for gone in ["a", "held", "web-a-1"] {
        assert!(
            !is_there(&site, gone),
            "{trigger:?}: {gone} is still there:\n{output}"
        );
    }
    assert_eq!(
        is_there(&site, "late"),
        trigger == Trigger::Partial,
        "{trigger:?}: a partial drain removes what it names, others every pod:\n{output}"
    );
    assert!(output.contains("force    forced/held"), "{trigger:?}:\n{output}");
    assert!(
        output.contains("volumes  all are detached"),
        "{trigger:?}:\n{output}"
    );
    site.until("the replica is taken back", || {
        web(&site)["spec"]["replicas"] == 1
    })
    .await;
    site.check_evicted_at_most_once();
}

#[tokio::test]
async fn a_lifecycle_event_with_all_options() {
    drains_with_all_options(Trigger::Event).await;
}

#[tokio::test]
async fn a_drain_request_with_all_options() {
    drains_with_all_options(Trigger::Request).await;
}

#[tokio::test]
async fn a_partial_drain_request_with_all_options() {
    drains_with_all_options(Trigger::Partial).await;
}

#[tokio::test]
async fn a_cordon_with_all_options() {
    drains_with_all_options(Trigger::Cordon).await;
}
