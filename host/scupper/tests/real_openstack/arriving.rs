//! Servers that Nova had sent to the host before it was disabled, and that no list shows yet.

use scupper_engine::HookPhase::BeforeDrain;
use serde_json::{Value, json};

use crate::driver::{Drain, limited};
use crate::nova::Nova;
use crate::testbed::{A, B, Testbed};

/// Longer than the drain of an empty host takes.
const SECONDS: &str = "20";

pub(crate) async fn scheduled(bed: &Testbed) {
    let nova = bed.nova();
    // Loading the policy takes time that Nova must not have.
    let drain = Drain::new(bed, &limited(&[])).await;
    let metadata = json!({"testbed-claim-seconds": SECONDS, "testbed-seconds": "0.5"});
    // On a busy machine a heartbeat may be late. The scheduler gives no server to such a host, and never tries again.
    nova.until("the host is up", |nova| {
        let services = nova.get(&format!("/os-services?binary=nova-compute&host={A}"));
        services["services"][0]["state"] == "up"
    })
    .await;
    let id = nova.create(bed.image(), A, &metadata);
    // Its host has it, and has not reported it yet.
    nova.until("it is scheduled", |nova| {
        let server = nova.server(&id);
        assert_ne!(server["status"], "ERROR", "{server}");
        let zone = server["OS-EXT-AZ:availability_zone"].as_str();
        zone.is_some_and(|zone| !zone.is_empty()) && server["OS-EXT-STS:task_state"].is_null()
    })
    .await;
    assert_eq!(nova.server(&id)["OS-EXT-SRV-ATTR:host"], Value::Null);
    leaves(drain, &nova, &id).await;
}

pub(crate) async fn migrated(bed: &Testbed) {
    let nova = bed.nova();
    let drain = Drain::new(bed, &limited(&[])).await;
    let check = format!("testbed-check-seconds={SECONDS}");
    let ids = bed.boot(1, &["--host", B, "--seconds", "0.5", "--meta", &check]);
    nova.migrate_live(&ids[0]);
    // Its destination is chosen, and checks slowly whether it can take the server.
    nova.until("the destination looks at it", |nova| {
        nova.events(&ids[0], "live-migration")
            .iter()
            .any(|event| event == "compute_check_can_live_migrate_destination")
    })
    .await;
    let path = format!("/os-migrations?instance_uuid={}", ids[0]);
    let record = nova.get(&path)["migrations"][0].clone();
    assert_eq!(record["dest_compute"], Value::Null, "{record}");
    leaves(drain, &nova, &ids[0]).await;
}

/// The drain ends with the server elsewhere, and reports that it waited for it.
async fn leaves(mut drain: Drain, nova: &Nova, id: &str) {
    let mut waited = false;
    drain
        .run_while(BeforeDrain, |_, waiting| {
            waited |= waiting
                .iter()
                .any(|on| on.contains(&id[..8]) && on.contains("has not named"));
            true
        })
        .await
        .unwrap();
    let left_behind = nova.servers(A);
    nova.until("nothing is done to it", |nova| {
        let server = nova.server(id);
        server["status"] == "ACTIVE" && server["OS-EXT-STS:task_state"].is_null()
    })
    .await;
    assert_eq!(
        nova.host_of(id),
        B,
        "it came after the end of the drain; at its end there were {left_behind:?}"
    );
    assert!(waited, "the drain did not report what it waited for");
    assert_eq!(nova.servers(A), [] as [String; 0]);
}
