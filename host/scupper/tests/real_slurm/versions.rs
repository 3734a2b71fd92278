//! A drain with each version of the API that can be had.

use std::time::Duration;

use scupper_engine::HookPhase;

use crate::rig::{OURS, Rig};
use crate::testbed::{Testbed, until};

#[tokio::test]
async fn each_version_drains_waits_signals_cancels_and_undrains() {
    for (suite, versions) in [
        ("trixie", &["v0.0.40", "v0.0.41", "v0.0.42"][..]),
        ("forky", &["v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"]),
    ] {
        let Some(testbed) = Testbed::up(&format!("versions-{suite}"), &["--suite", suite]) else {
            return;
        };
        for version in versions {
            drains(&testbed, version).await;
        }
        let newest = format!("ok API version: slurmrestd serves {}", versions.last().unwrap());
        let found = Rig::load(&testbed, &[]).await.check().await;
        assert!(found.contains(&newest), "{found:#?}");
    }
}

async fn drains(testbed: &Testbed, version: &str) {
    let config = [
        ("api-version", version),
        ("ladder", "60s signal CONT, 58s cancel"),
    ];
    let mut rig = Rig::load(testbed, &config).await;
    let jobs = [testbed.submit(300, &[]), testbed.submit(300, &["--user", "bob"])];
    // A suspended job does not show in the node's state.
    testbed.client(&["scontrol", "suspend", &jobs[1].to_string()]);
    rig.done(HookPhase::BeforeCordon).await;
    let waits = rig.waits().await;
    let named: Vec<_> = waits.waiting_for.iter().map(|on| on.what.clone()).collect();
    assert_eq!(named, jobs.map(|job| format!("job {job}")), "{version}");
    assert!(
        waits.waiting_for[0]
            .detail
            .starts_with("testbed of alice: running, at most until 20"),
        "{version}: {waits:?}"
    );
    assert_eq!(testbed.node(), format!("draining {OURS}"), "{version}");
    rig.deadline_in(Duration::from_secs(60));
    rig.done(HookPhase::BeforeDrain).await;
    for job in jobs {
        assert_eq!(testbed.job(job), "CANCELLED", "{version}");
    }
    rig.done(HookPhase::AfterDrain).await;
    rig.another("uncordon-uid");
    rig.done(HookPhase::AfterUncordon).await;
    until("it is idle", async || testbed.node().starts_with("idle ")).await;
}
