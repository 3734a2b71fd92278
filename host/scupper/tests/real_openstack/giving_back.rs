//! Restoring only our own changes.

use scupper_engine::HookPhase::{AfterUncordon, BeforeDrain, OnCancel};

use serde_json::json;

use crate::driver::{Drain, NODE, limited};
use crate::rig;
use crate::testbed::{A, B, Testbed};

pub(crate) async fn foreign(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--seconds", "0.5"]);
    for reason in ["kernel update", "AUTO: Connection to libvirt lost: 1"] {
        nova.disable(A, reason);
        let mut drain = Drain::new(bed, &limited(&[])).await;
        drain.run(BeforeDrain).await.unwrap();
        drain.run(OnCancel).await.unwrap();
        drain.run(AfterUncordon).await.unwrap();
        let service = nova.service(A);
        assert_eq!(
            (&service["status"], &service["disabled_reason"]),
            (&"disabled".into(), &reason.into())
        );
    }
    assert_eq!(nova.host_of(&ids[0]), B);
}

pub(crate) async fn cancel(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(3, &["--mode", "stuck"]);
    let mut drain = Drain::new(bed, &limited(&[("parallel", "3")])).await;
    // Two run, one is queued behind them.
    drain.until_running(2).await;
    drain.run(OnCancel).await.unwrap();
    for id in &ids {
        assert_eq!(nova.migrations(id), ["cancelled"]);
        assert_eq!(nova.host_of(id), A);
        assert_eq!(nova.server(id)["status"], "ACTIVE");
    }
    assert_eq!(nova.service(A)["status"], "enabled");
}

/// Two clusters with one Nova, and a node of this name in both: the other one's host is under maintenance.
pub(crate) async fn of_another_cluster(bed: &Testbed) {
    let nova = bed.nova();
    let theirs = format!("scupper: node={NODE} cluster=elsewhere drain=d9");
    nova.disable(B, &theirs);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    assert_eq!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    let ours = nova.service(A)["disabled_reason"].as_str().unwrap().to_owned();
    let head = format!("scupper: node={NODE} cluster=");
    assert!(ours.starts_with(&head) && !ours.contains("elsewhere"), "{ours}");
    assert_eq!(
        node.uncordon("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert_eq!(nova.service(A)["status"], "enabled");
    assert_eq!(nova.service(B)["disabled_reason"], theirs.as_str());
}

/// An operator's "ticket 7", which stays the operator's.
pub(crate) async fn what_stays(bed: &Testbed) {
    let nova = bed.nova();
    nova.disable(A, "ticket 7");
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    assert_eq!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(
        node.uncordon("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    let reported = node.reported();
    for (reason, words) in [
        ("ComputeServiceFoundDisabled", "was already disabled: ticket 7"),
        ("ComputeServiceStaysDisabled", "stays disabled: ticket 7"),
    ] {
        let notes = node.events(reason);
        assert!(
            notes.len() == 1 && notes[0].contains(words),
            "{reason}: {notes:?}\n{reported}"
        );
        assert_eq!(reported.matches(words).count(), 1, "{words}: {reported}");
    }
    assert_eq!(nova.service(A)["disabled_reason"], "ticket 7");
}

pub(crate) async fn what_stays_in_a_terminal(bed: &Testbed) {
    let nova = bed.nova();
    nova.disable(A, "ticket 7");
    let mut node = rig::node(bed, &[], json!({})).await;
    for (command, words) in [
        ("drain", "was already disabled: ticket 7"),
        ("uncordon", "stays disabled: ticket 7"),
    ] {
        let ended = node.types(&[command, NODE, "--local"]).ended().await;
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        let reported = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(reported.matches(words).count(), 1, "{ended:#?}");
    }
    assert!(!node.is_cordoned());
    assert_eq!(nova.service(A)["disabled_reason"], "ticket 7");
}

/// `kubectl uncordon` runs no hooks: `scupper uncordon` completes it.
pub(crate) async fn after_kubectl_uncordon(bed: &Testbed) {
    let nova = bed.nova();
    let mut node = rig::node(bed, &[], json!({})).await;
    let drain = node.types(&["drain", NODE, "--local"]).ended().await;
    assert_eq!(drain.code, Some(0), "{drain:#?}");
    node.kubectl_uncordon();
    assert_eq!(nova.service(A)["status"], "disabled");
    let uncordon = node.types(&["uncordon", NODE, "--local"]).ended().await;
    assert_eq!(uncordon.code, Some(0), "{uncordon:#?}");
    assert_eq!(nova.service(A)["status"], "enabled", "{uncordon:#?}");
}
