//! Several cells of Nova. Its API does not say which host is in which cell, and servers migrate only within theirs.

use serde_json::json;

use crate::driver::NODE;
use crate::rig;
use crate::testbed::{A, B, C, Testbed};

pub(crate) async fn within(bed: &Testbed) {
    let nova = bed.nova();
    bed.cell2(true);
    let here = bed.boot(2, &["--seconds", "0.5"]);
    let there = bed.boot(1, &["--host", C]).remove(0);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    assert_eq!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    for id in &here {
        assert_eq!(
            (nova.host_of(id).as_str(), nova.migrations(id).len()),
            (B, 1),
            "{}",
            node.reported()
        );
    }
    assert_eq!(nova.host_of(&there), C);
    assert_eq!(
        node.uncordon("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    let states = [A, B, C].map(|host| nova.service(host)["status"].clone());
    assert_eq!(states, ["enabled", "enabled", "enabled"]);
}

pub(crate) async fn alone(bed: &Testbed) {
    let nova = bed.nova();
    bed.cell2(true);
    let id = bed.boot(1, &["--host", C, "--prefix", "lone"]).remove(0);
    let table = format!("{NODE}={C}");
    let config = [("host-table", table.as_str()), ("attempts", "1")];
    let mut node = rig::node(bed, &config, json!({})).await;
    node.start().await;
    assert_ne!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    let words = "; 2 other hosts are enabled and up, but full, filtered out or in another cell";
    assert!(node.reported().contains(words), "{}", node.reported());
    assert_eq!(nova.server(&id)["status"], "ACTIVE");
    assert_eq!(
        node.uncordon("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert_eq!(nova.service(C)["status"], "enabled", "{}", node.reported());
}

/// Servers of the host may be in that cell, for all that Nova can say.
pub(crate) async fn down(bed: &Testbed) {
    let nova = bed.nova();
    bed.cell2(true);
    let id = bed.boot(1, &["--seconds", "0.5"]).remove(0);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    bed.cell2(false);
    node.begin_drain("drain-1");
    node.until("it says so", || node.reported().contains("a cell may be down"))
        .await;
    let cordoned = node.is_cordoned();
    bed.cell2(true);
    assert!(!cordoned, "{}", node.reported());
    assert_eq!(node.ends("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(nova.host_of(&id), B, "{}", node.reported());
}
