//! A cancel at the worst moment: Nova has taken the requests, and its conductor has recorded no migration yet.

use scupper_engine::HookPhase::{BeforeDrain, OnCancel};
use scupper_engine::StepOutcome;

use serde_json::json;

use crate::driver::{Drain, NODE, limited};
use crate::driver_mode::DriverMode;
use crate::proxy::{Fault, Proxy};
use crate::rig;
use crate::testbed::{A, CONDUCTOR, Testbed};

/// What the end of a drain and `scupper status` say if the cancel has not finished.
const STILL: &str = "policy openstack must still undo its part of the drain: ";

pub(crate) async fn before_the_record(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--mode", "stuck"]);
    let mut drain = Drain::new(bed, &limited(&[])).await;
    // Disabling needs the conductor, which must be paused when the moves are requested.
    nova.disable(A, &drain.mark());
    bed.pause(CONDUCTOR);
    let asked = drain.step(BeforeDrain).await;
    let standing: Vec<(String, Vec<String>)> = ids
        .iter()
        .map(|id| {
            let task = nova.server(id)["OS-EXT-STS:task_state"].clone();
            (task.as_str().unwrap_or_default().to_owned(), nova.migrations(id))
        })
        .collect();
    let mut looks = 0;
    let mut enabled_early = false;
    let cancelled = drain
        .run_while(OnCancel, |_, _| {
            looks += 1;
            enabled_early |= nova.service(A)["status"] == "enabled";
            if looks == 1 {
                bed.resume(CONDUCTOR);
            }
            true
        })
        .await;
    bed.resume(CONDUCTOR);
    assert!(matches!(asked, StepOutcome::Pending { .. }), "{asked:?}");
    for (task, migrations) in standing {
        assert_eq!((task.as_str(), migrations.len()), ("migrating", 0));
    }
    assert_eq!(cancelled, Ok(true));
    nova.until("the conductor has recorded the migrations", |nova| {
        ids.iter().all(|id| !nova.migrations(id).is_empty())
    })
    .await;
    for id in &ids {
        assert_eq!(nova.migrations(id), ["cancelled"], "it leaves after the cancel");
        assert_eq!(nova.host_of(id), A);
    }
    assert!(
        !enabled_early,
        "the host was enabled while servers were leaving it"
    );
    assert_eq!(nova.service(A)["status"], "enabled");
}

/// nova-compute is silent when the drain is cancelled, and responds again within the time of the cancel.
pub(crate) async fn while_silent(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--mode", "stuck"]);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    nova.until("it moves", |nova| nova.migrations(&ids[0]) == ["running"])
        .await;
    bed.pause(A);
    nova.until("it counts as down", |nova| nova.service(A)["state"] == "down")
        .await;
    let resumed = async {
        node.until("the cancel has found it silent", || {
            !node.events("ServerMigrationNotAborted").is_empty() || node.reported().contains("Cancelled")
        })
        .await;
        bed.resume(A);
    };
    tokio::join!(node.cancel("drain-1"), resumed);
    let silent = node.events("ServerMigrationNotAborted");
    assert_eq!(silent.len(), 1, "{silent:?}\n{}", node.reported());
    assert_eq!(nova.migrations(&ids[0]), ["cancelled"], "{}", node.reported());
    assert_eq!(nova.host_of(&ids[0]), A);
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    let status = node.types(&["status", NODE]).ended().await;
    assert!(!status.stdout.contains(STILL), "{status:#?}");
    assert!(!node.reported().contains(STILL), "{}", node.reported());
    assert!(!node.is_cordoned());
}

/// Nova calls every nova-compute down while its conductor is silent: nothing can be aborted, and the servers still leave.
/// The cancel has 15 s, and Nova needs longer.
pub(crate) async fn while_silent_to_the_end(bed: &Testbed) {
    let nova = bed.nova();
    let (mut node, ids) = with_two_that_move(bed).await;
    bed.pause(CONDUCTOR);
    nova.until("it counts as down", |nova| nova.service(A)["state"] == "down")
        .await;
    node.cancel("drain-1").await;
    let aborted = node.events("ServerMigrationAborted");
    assert!(aborted.is_empty(), "{aborted:?}");
    stays_disabled_and_names_what_leaves(bed, &mut node, CONDUCTOR, &ids).await;
}

/// Nova has taken the requests to abort the migrations, and calls nova-compute down only when it has not answered them.
pub(crate) async fn falls_silent(bed: &Testbed) {
    let (mut node, ids) = with_two_that_move(bed).await;
    bed.pause(A);
    node.cancel("drain-1").await;
    stays_disabled_and_names_what_leaves(bed, &mut node, A, &ids).await;
}

async fn with_two_that_move(bed: &Testbed) -> (DriverMode, Vec<String>) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--mode", "stuck", "--prefix", "vm"]);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    nova.until("both move", |nova| {
        ids.iter().all(|id| nova.migrations(id) == ["running"])
    })
    .await;
    (node, ids)
}

/// The cancel is over, and this service of Nova is silent.
async fn stays_disabled_and_names_what_leaves(
    bed: &Testbed,
    node: &mut DriverMode,
    silent: &str,
    ids: &[String],
) {
    let nova = bed.nova();
    let service = nova.service(A)["status"].clone();
    let status = node.types(&["status", NODE]).ended().await;
    bed.resume(silent);
    assert_eq!(service, "disabled", "{}", node.reported());
    let words = [0, 1].map(|at| format!("server vm-{at} ({})", &ids[at][..8]));
    let are_in = |line: &str| words.iter().all(|name| line.contains(name));
    let events = node.events("ServerMigrationNotAborted");
    assert!(events.len() == 1 && are_in(&events[0]), "{events:?}");
    let still = format!("{STILL}nova-compute on compute-a does not respond");
    let names = |text: &str| text.lines().any(|line| line.contains(&still) && are_in(line));
    node.until("the end names them", || names(&node.reported())).await;
    assert!(names(&status.stdout), "{status:#?}");
    nova.until("it responds again", |nova| nova.service(A)["state"] == "up")
        .await;
    let uncordon = node.types(&["uncordon", NODE, "--local"]).ended().await;
    assert_eq!(uncordon.code, Some(0), "{uncordon:#?}");
    assert_eq!(nova.service(A)["status"], "enabled", "{uncordon:#?}");
}

/// As the first one, from the request for a drain to its withdrawal.
pub(crate) async fn in_driver_mode(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--mode", "stuck"]);
    let mut pause = bed.pausing(CONDUCTOR);
    let mut asked = 0;
    // The policy's check requests the move of a server that does not exist.
    let first = ids.clone();
    let proxy = Proxy::start(bed.nova_url(), move |seen| {
        let is_ours = first.iter().any(|id| seen.path.contains(id.as_str()));
        if seen.method == "POST" && is_ours && seen.path.ends_with("/action") {
            asked += 1;
            if asked == 1 {
                pause();
            }
        }
        Fault::Pass
    });
    let mut node = rig::node(bed, &[], json!({})).await;
    node.configure(json!({}), rig::policies_at(bed, &proxy.url, &[]));
    node.start().await;
    node.begin_drain("drain-1");
    let asked = |id: &String| proxy.count("POST", &format!("/servers/{id}/action")) == 1;
    node.until("both are asked to move", || ids.iter().all(asked))
        .await;
    let unrecorded = ids.iter().all(|id| nova.migrations(id).is_empty());
    let stopping = "migrations from compute-a are being aborted";
    let resumed = async {
        node.until("the cancel has looked", || {
            let reported = node.reported();
            reported.contains(stopping) || reported.contains("Cancelled")
        })
        .await;
        bed.resume(CONDUCTOR);
    };
    tokio::join!(node.cancel("drain-1"), resumed);
    assert!(unrecorded, "the conductor stood still too late");
    nova.until("the conductor has recorded the migrations", |nova| {
        ids.iter().all(|id| !nova.migrations(id).is_empty())
    })
    .await;
    for id in &ids {
        assert_eq!(nova.migrations(id), ["cancelled"], "{}", node.reported());
        assert_eq!(nova.host_of(id), A);
    }
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    assert!(!node.is_cordoned());
}
