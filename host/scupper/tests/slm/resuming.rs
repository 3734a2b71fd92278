//! The driver is killed while a hook is under way, and the next one finds another file of the policy: no policy there
//! can read the version of the hook's state.

use std::fs;
use std::path::Path;

use crate::driver::Driver;
use crate::guests::guest;
use crate::reloading::notes;
use crate::rig::{DRIVER, Rig};

/// A driver with the revision in this file, and with a state directory of its own: with a saved revision the hook would
/// continue.
async fn driver(rig: &Rig, module: &Path, state: &Path) -> Driver {
    let policy = format!("revision={}", module.display());
    let state = state.to_str().unwrap();
    let arguments = [
        "--policy",
        &policy,
        "--policy-config",
        "revision.state=tell",
        "--state-dir",
        state,
    ];
    rig.driver(&arguments).await
}

fn checkpoint(rig: &Rig) -> String {
    let node = rig.node();
    let text = node["metadata"]["annotations"]["scupper.dev/drain"].as_str();
    text.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_hook_restarts_with_an_event_if_no_revision_reads_its_state() {
    let rig = Rig::start().await;
    rig.pods(&["a", "b"]);
    let dir = tempfile::tempdir().unwrap();
    let module = dir.path().join("revision.wasm");
    fs::copy(guest("revision_1"), &module).unwrap();
    let mut first = driver(&rig, &module, &dir.path().join("one")).await;
    rig.event("drain", DRIVER);
    rig.until("the hook is under way, and where it stands is saved", || {
        assert!(first.is_running(), "it ended:\n{}", first.log());
        checkpoint(&rig).contains(r#""version":1"#)
    })
    .await;
    assert!(rig.is_cordoned());
    let held = rig.kubelet.hold().await;
    first.kill();
    fs::copy(guest("revision_6"), &module).unwrap();
    let next = driver(&rig, &module, &dir.path().join("two")).await;
    rig.until("the dead endpoint is gone", || rig.endpoints().len() == 1)
        .await;
    drop(held);
    rig.until("it is reported", || {
        !notes(&rig, "PolicyHookBegunAgain").is_empty()
    })
    .await;
    rig.until("the hook has begun again, and that is saved", || {
        next.output().contains("6 after") && checkpoint(&rig).contains(r#""version":3"#)
    })
    .await;
    assert!(!next.output().contains("6 after 1"), "{}", next.output());
    let reported = notes(&rig, "PolicyHookBegunAgain");
    assert_eq!(reported.len(), 1, "{reported:?}");
    let said = "policy revision: a before-drain hook restarts without its state: it has version 1";
    assert!(
        reported[0].starts_with(said) && reported[0].ends_with("reads version 3"),
        "{reported:?}"
    );
    // It still blocks the drain: nothing was evicted.
    assert_eq!(rig.pod_names(), ["a", "b"]);
    rig.delete_event("drain");
    assert_eq!(rig.end_of("drain").await, "Failed");
    rig.until("the cordon is lifted", || !rig.is_cordoned()).await;
}
