//! Servers that move.

use scupper_engine::HookPhase::{AfterUncordon, BeforeCordon, BeforeDrain};
use serde_json::json;

use crate::driver::{Drain, limited};
use crate::testbed::{A, B, Testbed};

/// Of several tenants, one of them paused; with the minimal credential.
pub(crate) async fn five(bed: &Testbed) {
    let nova = bed.nova();
    let mut ids = bed.boot(3, &["--seconds", "0.5"]);
    ids.extend(bed.boot(
        2,
        &["--seconds", "0.5", "--project", "tenant-2", "--prefix", "other"],
    ));
    nova.act(&ids[0], &json!({"pause": null}));
    nova.until("paused", |nova| nova.server(&ids[0])["status"] == "PAUSED")
        .await;

    let mut drain = Drain::new(bed, &limited(&[])).await;
    drain.run(BeforeCordon).await.unwrap();
    assert_eq!(
        nova.service(A)["status"],
        "enabled",
        "the look before the cordon changes nothing"
    );
    let mut reported = Vec::new();
    drain
        .run_while(BeforeDrain, |progress, waiting| {
            reported.push(progress.to_owned());
            reported.extend(waiting.iter().cloned());
            true
        })
        .await
        .unwrap();

    assert_eq!(nova.servers(A), [] as [String; 0]);
    for id in &ids {
        assert_eq!(nova.host_of(id), B);
        assert_eq!(nova.migrations(id), ["completed"], "{id}");
    }
    assert_eq!(nova.server(&ids[0])["status"], "PAUSED");
    let reason = nova.service(A)["disabled_reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("scupper: node=node-1 cluster=testbed drain=drain-"),
        "{reason}"
    );
    let all = reported.join("\n");
    assert!(
        all.contains("of 5 servers have left compute-a") && all.contains("live migration"),
        "{all}"
    );

    drain.run(AfterUncordon).await.unwrap();
    assert_eq!(nova.service(A)["status"], "enabled");
}

pub(crate) async fn cold(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--seconds", "0.5"]);
    nova.act(&ids[0], &json!({"os-stop": null}));
    nova.until("shut off", |nova| nova.server(&ids[0])["status"] == "SHUTOFF")
        .await;

    // Not moved by default.
    let mut drain = Drain::new(bed, &limited(&[])).await;
    drain.run(BeforeDrain).await.unwrap();
    assert_eq!(nova.servers(A), ids);

    let mut drain = Drain::new(bed, &limited(&[("stopped", "cold")])).await;
    drain.run(BeforeDrain).await.unwrap();
    assert_eq!(nova.host_of(&ids[0]), B);
    assert_eq!(nova.server(&ids[0])["status"], "SHUTOFF");
    assert_eq!(nova.migrations(&ids[0]), ["confirmed"]);
}

/// No list of the host's servers shows it, and it would land on the drained host afterwards.
pub(crate) async fn incoming(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--host", B, "--mode", "stuck"]);
    nova.act(
        &ids[0],
        &json!({"os-migrateLive": {"host": null, "block_migration": "auto"}}),
    );
    nova.until("it is on its way", |nova| nova.migrations(&ids[0]) == ["running"])
        .await;
    assert_eq!(nova.servers(A), [] as [String; 0]);

    let mut drain = Drain::new(bed, &limited(&[])).await;
    let mut steps = 0;
    let through = drain
        .run_while(BeforeDrain, |_, waiting| {
            steps += 1;
            assert!(waiting.iter().any(|on| on.contains(&ids[0][..8])), "{waiting:?}");
            steps < 4
        })
        .await;
    assert_eq!(through, Ok(false), "it is not drained");

    let mut drain = Drain::new(bed, &limited(&[("incoming", "abort")])).await;
    drain.run(BeforeDrain).await.unwrap();
    assert_eq!(nova.host_of(&ids[0]), B);
    assert_eq!(nova.migrations(&ids[0]), ["cancelled"]);
}
