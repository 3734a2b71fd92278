//! What gpu.wasm learns of DrainRequests, with the real driver.

use std::path::PathBuf;
use std::sync::OnceLock;

use scupper_policy_spec::FACTS;
use scupper_simulator::api::Forbidden;
use serde_json::{Value, json};
use xtask::policies;
use xtask::workspace::Workspace;

use crate::drain_requests::Site;
use crate::driver::Driver;
use crate::guests::guest;
use crate::objects::{closed_budget, pod};

pub(crate) fn policy() -> Value {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let module = BUILT.get_or_init(|| {
        let wanted = ["gpu".to_owned()];
        let built = policies::build(&Workspace::read().unwrap(), &wanted, None).unwrap();
        built.into_iter().next().unwrap().file
    });
    json!([{"name": "gpu", "module": module, "config": {"trusted-annotations": "dgxc.nvidia.com/devices"},
        "grants": {"facts": ["request", "resources"]}}])
}

/// A pod with this GPU.
pub(crate) fn with_gpu(name: &str, gpu: &str) -> Value {
    let mut pod = pod(name);
    let devices = json!({"devices": {"nvidia.com/gpu": [gpu]}}).to_string();
    pod["metadata"]["annotations"]["dgxc.nvidia.com/devices"] = json!(devices);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"nvidia.com/gpu": "1"}});
    pod
}

async fn site(group: &'static str) -> (Site, Driver) {
    let site = Site::of_group(group).await;
    for (name, gpu) in [("a", "GPU-1"), ("b", "GPU-2")] {
        site.apply(with_gpu(name, gpu));
    }
    site.pods(&["c"]);
    let driver = site.driver(json!({"group": group}), policy()).await;
    (site, driver)
}

pub(crate) fn reset(gpu: &str) -> Value {
    json!({"recommendedAction": "COMPONENT_RESET", "entitiesImpacted": [{"type": "GPU_UUID", "value": gpu}]})
}

#[tokio::test]
async fn a_request_of_a_group_of_ones_own_evicts_only_the_pods_of_its_gpu() {
    let (site, driver) = site("drain.example.com").await;
    site.create("1", reset("GPU-1")).await;
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert_eq!(site.pod_names(), ["b", "c"], "{}", driver.output());
    assert_eq!(
        site.message("1", "DrainComplete"),
        "1 pod evicted, 2 kept as planned"
    );
    // Afterwards the machine restarts: the rest leaves as well.
    let mut reboot = reset("GPU-1");
    reboot["recommendedAction"] = json!("RESTART_BM");
    site.create("2", reboot).await;
    site.becomes("2", "DrainComplete", "True Drained").await;
    assert!(site.pod_names().is_empty());
    site.check_evicted_at_most_once();
}

#[tokio::test]
async fn a_request_for_another_gpu_is_complete_only_when_that_ones_pods_are_gone() {
    let (site, _driver) = site("nvsentinel.nvidia.com").await;
    site.apply(closed_budget());
    site.create("1", reset("GPU-1")).await;
    site.pods_are_asked_to_leave().await;
    site.create("2", reset("GPU-2")).await;
    site.becomes("2", "DrainInProgress", "False Waiting").await;
    site.delete_budget();
    site.becomes("1", "DrainComplete", "True Drained").await;
    site.becomes("2", "DrainComplete", "True Drained").await;
    assert_eq!(site.pod_names(), ["c"]);
    site.check_evicted_at_most_once();
}

#[tokio::test]
async fn a_planner_that_waits_for_an_answer_defers_the_drain() {
    let site = Site::start().await;
    site.pods(&["a"]);
    site.api.set_forbidden(Forbidden {
        user_agent: "scupper".to_owned(),
        resource: "namespaces".to_owned(),
        ..Forbidden::default()
    });
    let asks = json!([{"name": "asks", "module": guest("asks"), "grants": {"facts": FACTS},
        "config": {"ask": "namespace default", "then": "go on"}}]);
    let _driver = site.driver(json!({}), asks).await;
    site.create("1", json!({})).await;
    site.becomes("1", "DrainDeferred", "True PolicyHolds").await;
    let message = site.message("1", "DrainDeferred");
    assert!(
        message.starts_with("asks: ") && message.contains("namespaces"),
        "{message}"
    );
    assert!(site.evictions().is_empty());
    site.api.clear_forbidden();
    site.becomes("1", "DrainComplete", "True Drained").await;
    assert_eq!(site.condition("1", "DrainDeferred"), "False NotHeld");
}

#[tokio::test]
async fn a_pod_whose_gpu_is_unknown_fails_the_request_before_anything_changes() {
    let (site, _driver) = site("nvsentinel.nvidia.com").await;
    let mut unknown = with_gpu("d", "GPU-3");
    unknown["metadata"]["annotations"] = json!({});
    site.apply(unknown);
    site.create("1", reset("GPU-1")).await;
    site.becomes("1", "DrainFailed", "True Blocked").await;
    let message = site.message("1", "DrainFailed");
    assert!(
        message.contains("default/d") && message.contains("ResourceClaims and trusted annotations name 0"),
        "{message}"
    );
    assert_eq!(site.pod_names(), ["a", "b", "c", "d"]);
    assert!(site.evictions().is_empty());
}
