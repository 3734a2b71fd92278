//! DrainRequests that strangers fill, of a CRD without a selectable field: they cost a driver little memory, and those of
//! its node get an answer.

use std::fs;

use serde_json::{Value, json};

use crate::drain_requests::Site;
use crate::rig::NODE;

const LARGE: usize = 1_400_000;
/// How much the driver may grow, with two builds of the allocator's habits to spare.
const GROWTH_KIB: u64 = 64 * 1024;

/// A request of 1.4 MB: one long text, or very many short ones.
fn large(number: usize, node: &str) -> Value {
    // The simulator keeps every value of these, and looks at them all.
    let spec = if number.is_multiple_of(25) {
        json!({"nodeName": node, "errorCode": vec![""; LARGE / 3]})
    } else {
        json!({"nodeName": node, "reason": "x".repeat(LARGE)})
    };
    json!({
        "apiVersion": "nvsentinel.nvidia.com/v1alpha1", "kind": "DrainRequest",
        "metadata": {"name": format!("large-{node}-{number}"), "namespace": "nvsentinel",
            "labels": {"nvsentinel.nvidia.com/node-name": NODE}},
        "spec": spec,
    })
}

fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn fifty_requests_of_1_4_mb_cost_the_driver_less_than_64_mib() {
    let site = Site::start().await;
    site.pods(&["a"]);
    let mut driver = site.driver(json!({}), json!([])).await;
    site.create("usual", json!({})).await;
    site.becomes("usual", "DrainComplete", "True Drained").await;
    let usual = peak(driver.pid());
    driver.kill();
    // Of this node, and of another one by a label that lies.
    for number in 0..25 {
        site.apply(large(number, NODE));
        site.apply(large(number, "worker-2"));
    }
    let driver = site.driver(json!({}), json!([])).await;
    site.until("every large request of the node is answered", || {
        let writes = site.api.requests().into_iter();
        let answers =
            writes.filter(|it| it.subresource == "status" && it.path.contains("/drainrequests/large-"));
        answers.filter(|it| it.status == Some(200)).count() >= 25
    })
    .await;
    let most = peak(driver.pid());
    assert!(most < usual + GROWTH_KIB, "from {usual} to {most} KiB");
    let log = driver.log();
    assert!(log.contains("declares no selectable field"), "{log}");
    for (node, answer) in [(NODE, json!("InvalidRequest")), ("worker-2", json!(null))] {
        let name = format!("large-{node}-1");
        let store = site.api.store();
        let request = store.get("drainrequests.nvsentinel.nvidia.com", "nvsentinel", &name);
        assert_eq!(
            request.unwrap()["status"]["conditions"][0]["reason"],
            answer,
            "{name}"
        );
    }
    // It serves all the same.
    site.pods(&["b"]);
    site.create("next", json!({})).await;
    site.becomes("next", "DrainComplete", "True Drained").await;
}
