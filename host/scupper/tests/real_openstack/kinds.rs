//! Servers of other kinds: booted from volumes, shelved, resized.

use serde_json::json;

use crate::driver::NODE;
use crate::driver_mode::DriverMode;
use crate::nova::Nova;
use crate::rig;
use crate::testbed::{A, B, Testbed};

async fn act(nova: &Nova, id: &str, action: &str, status: &str) {
    nova.act(id, &json!({ action: null }));
    nova.until_status(id, status).await;
}

async fn drained(node: &DriverMode) {
    assert_eq!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
}

pub(crate) async fn from_volumes(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--volume", "--seconds", "0.5"]);
    let attached = nova.server(&ids[0])["os-extended-volumes:volumes_attached"].clone();
    assert_eq!(attached.as_array().map(Vec::len), Some(1), "{attached}");
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    drained(&node).await;
    for id in &ids {
        assert_eq!(
            (nova.host_of(id).as_str(), nova.migrations(id)),
            (B, vec!["completed".to_owned()]),
            "{}",
            node.reported()
        );
        assert_eq!(nova.server(id)["status"], "ACTIVE");
    }
}

/// One that is still on its host, and one that is offloaded. Both stay what they are.
pub(crate) async fn shelved(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "0.5", "--prefix", "shelf"]);
    for id in &ids {
        act(&nova, id, "shelve", "SHELVED").await;
    }
    act(&nova, &ids[1], "shelveOffload", "SHELVED_OFFLOADED").await;
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    drained(&node).await;
    assert_eq!(nova.host_of(&ids[0]), A);
    for (id, status) in ids.iter().zip(["SHELVED", "SHELVED_OFFLOADED"]) {
        assert_eq!(nova.server(id)["status"], status, "{}", node.reported());
    }
    let events = node.events("ServersLeftBehind");
    assert!(
        events.len() == 1 && events[0].contains("1 server stays on compute-a, as configured: server shelf-"),
        "{events:?}"
    );
}

/// The tenant unshelves it on the drained host while pods leave.
pub(crate) async fn unshelved(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--seconds", "0.5"]).remove(0);
    act(&nova, &id, "shelve", "SHELVED").await;
    let pods = vec![rig::compute_pod(), rig::pod("slow").stuck()];
    let mut node = rig::node_with(bed, &[], pods).await;
    node.start().await;
    node.begin_drain("drain-1");
    node.until("the pod is asked to leave", || {
        node.reported().contains("evict    shop/slow")
    })
    .await;
    act(&nova, &id, "unshelve", "ACTIVE").await;
    assert_eq!(nova.host_of(&id), A);
    node.api.store().delete("pods", "shop", "slow").unwrap();
    assert_eq!(node.ends("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(nova.host_of(&id), B, "{}", node.reported());
}

/// A resize away from the host is not confirmed: it is refused before any change.
pub(crate) async fn resized(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--seconds", "0.5"]).remove(0);
    bed.boot(1, &[]);
    nova.act(&id, &json!({"resize": {"flavorRef": "medium"}}));
    nova.until_status(&id, "VERIFY_RESIZE").await;
    assert_eq!(nova.host_of(&id), B);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    assert_ne!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    let fix = format!("confirm each (openstack server resize confirm {id})");
    assert!(node.reported().contains(&fix), "{}", node.reported());
    assert!(!node.is_cordoned(), "{}", node.reported());
    assert_eq!(nova.service(A)["status"], "enabled");
    let doctor = node.types(&["doctor", "--node", NODE]).ended().await;
    assert!(doctor.stdout.contains(&fix), "{doctor:#?}");
}
