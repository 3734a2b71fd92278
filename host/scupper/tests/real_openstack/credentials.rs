//! A credential that Keystone accepted, and rejects in the middle of a drain.

use serde_json::json;

use crate::driver::NODE;
use crate::rig;
use crate::testbed::{A, B, Testbed};

/// Its user is disabled and enabled again.
pub(crate) async fn disabled_for_a_while(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "3"]);
    let config = [("token-timeout", "60s"), ("parallel", "1")];
    let mut node = rig::node(bed, &config, json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    let moving = |nova: &crate::nova::Nova| ids.iter().any(|id| nova.migrations(id) == ["running"]);
    nova.until("one moves", moving).await;
    bed.user_enabled("drainer", false);
    let waits = "Keystone rejects the credential";
    node.until("it waits, or ends", || {
        node.reported().contains(waits) || node.reported().contains("PolicyFailed")
    })
    .await;
    bed.user_enabled("drainer", true);
    assert!(
        node.reported()
            .contains("; waiting for a valid credential until "),
        "{}",
        node.reported()
    );
    assert_eq!(node.ends("drain-1").await, "Succeeded", "{}", node.reported());
    for id in &ids {
        assert_eq!(
            (nova.host_of(id).as_str(), nova.migrations(id).len()),
            (B, 1),
            "{}",
            node.reported()
        );
    }
}

/// It stays disabled: the drain ends after `token-timeout`, and says what stays. The uncordon is for later.
pub(crate) async fn disabled(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--mode", "stuck"]);
    let mut node = rig::node(bed, &[("token-timeout", "4s")], json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    nova.until("it moves", |nova| nova.migrations(&ids[0]) == ["running"])
        .await;
    bed.user_enabled("drainer", false);
    let ended = node.ends("drain-1").await;
    let status = nova.service(A)["status"].clone();
    bed.user_enabled("drainer", true);
    assert_ne!(ended, "Succeeded", "{}", node.reported());
    for words in [
        "no valid credential within 4s (`token-timeout`)",
        "anything that this drain changed in Nova stays until the node is uncordoned",
    ] {
        assert!(node.reported().contains(words), "{words}\n{}", node.reported());
    }
    assert_eq!(status, "disabled");
    let named = "openstack had not finished on-cancel when the drain ended";
    let known = node.types(&["status", NODE]).ended().await;
    assert!(known.stdout.contains(named), "{known:#?}");
    let uncordon = node.types(&["uncordon", NODE, "--local"]).ended().await;
    assert_eq!(uncordon.code, Some(0), "{uncordon:#?}");
    assert_eq!(nova.service(A)["status"], "enabled", "{uncordon:#?}");
    let known = node.types(&["status", NODE]).ended().await;
    assert!(!known.stdout.contains(named), "{known:#?}");
}
