//! What people read while a drain waits, and when it ends.

use scupper_engine::HookPhase::{BeforeDrain, OnCancel};
use scupper_engine::StepOutcome;
use scupper_policy::Severity;
use serde_json::json;

use crate::driver::{Drain, Setup, limited};
use crate::proxy::{Fault, Proxy};
use crate::rig;
use crate::testbed::{A, B, Testbed};

/// A migration that transfers nothing any more.
pub(crate) async fn stalled(bed: &Testbed) {
    bed.boot(1, &["--mode", "stuck"]);
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    node.until("it has stalled", || {
        node.reported()
            .contains("128 MiB to go, nothing transferred for ")
    })
    .await;
    node.cancel("drain-1").await;
}

/// nova-compute dies while a server moves: the end names that, and not only what the drain waited for.
pub(crate) async fn dead_compute(bed: &Testbed) {
    bed.boot(1, &["--mode", "stuck"]);
    let mut node = rig::node(bed, &[], json!({"sla": "60s"})).await;
    node.start().await;
    node.begin_drain("drain-1");
    node.until("a server moves", || node.reported().contains("128 MiB to go"))
        .await;
    bed.stop_compute(A);
    let ended = node.ends("drain-1").await;
    node.until("the driver reports the end", || {
        node.reported().contains("DeadlineExceeded")
    })
    .await;
    bed.start_compute(A);
    assert_ne!(ended, "Succeeded", "{}", node.reported());
    let reported = node.reported();
    let end = reported
        .split("the deadline passed while policy openstack reported: ")
        .nth(1);
    let named = end.and_then(|end| {
        let cause = end.find("nova-compute on compute-a is down")?;
        Some(cause < end.find("waits for server")?)
    });
    assert_eq!(named, Some(true), "{reported}");
    let events = node.events("DeadlineExceeded");
    assert!(
        events
            .iter()
            .any(|note| note.contains("nova-compute on compute-a is down")),
        "{events:?}"
    );
}

/// Nova refuses every request to migrate.
pub(crate) async fn refused(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &[]);
    let proxy = Proxy::start(bed.nova_url(), |seen| {
        let is_it = seen.method == "POST" && seen.path.ends_with("/action");
        // The check in advance asks for a server that does not exist.
        if is_it && !seen.path.contains("/servers/00000000-") {
            Fault::Answer(409, "")
        } else {
            Fault::Pass
        }
    });
    let config = [("retry-seconds", "4"), ("attempts", "2")];
    let mut node = rig::node(bed, &[], json!({})).await;
    node.configure(json!({}), rig::policies_at(bed, &proxy.url, &config));
    node.start().await;
    let begun = std::time::Instant::now();
    let ended = node.drain("drain-1").await;
    let took = begun.elapsed();
    assert_ne!(ended, "Succeeded");
    let reported = node.reported();
    assert!(took.as_secs() >= 4, "{took:?}\n{reported}");
    assert!(
        reported.contains("0 moving") && !reported.contains("1 moving"),
        "{reported}"
    );
    assert!(
        reported.contains("Nova refuses to migrate it: 409 ; retry in 4 s"),
        "{reported}"
    );
    // Two attempts, and one to get Nova's words.
    assert_eq!(
        proxy.count("POST", &format!("/servers/{}/action", ids[0])),
        3,
        "{reported}"
    );
    assert_eq!(nova.host_of(&ids[0]), A);
}

/// The only other host is disabled by an operator in the middle.
pub(crate) async fn no_valid_host(bed: &Testbed) {
    let nova = bed.nova();
    let first = bed.boot(1, &["--mode", "stuck", "--prefix", "first"]).remove(0);
    bed.boot(1, &["--prefix", "second"]);
    let config = [("attempts", "1"), ("parallel", "1"), ("order", "name")];
    let mut node = rig::node(bed, &config, json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    nova.until("the first one moves", |nova| {
        nova.migrations(&first) == ["running"]
    })
    .await;
    nova.disable(B, "ticket 9");
    let id = nova.get(&format!("/servers/{first}/migrations"))["migrations"][0]["id"].clone();
    nova.act_on_migration(&first, &id, &json!({"force_complete": null}));
    let ended = node.ends("drain-1").await;
    assert_ne!(ended, "Succeeded", "{}", node.reported());
    assert!(
        node.reported()
            .contains("No valid host was found; compute-b is disabled: ticket 9"),
        "{}",
        node.reported()
    );
}

/// A server falls into ERROR while another one moves.
pub(crate) async fn error(bed: &Testbed) {
    let nova = bed.nova();
    let moving = bed.boot(1, &["--mode", "stuck", "--prefix", "a"]).remove(0);
    let broken = bed.boot(1, &["--prefix", "b"]).remove(0);
    let config = [("parallel", "1"), ("order", "name")];
    let mut node = rig::node(bed, &config, json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    nova.until("one moves", |nova| nova.migrations(&moving) == ["running"])
        .await;
    nova.act(&broken, &json!({"os-resetState": {"state": "error"}}));
    let words = format!(
        "waits for server b-0 ({}): error, cannot be migrated",
        &broken[..8]
    );
    node.until("it says why", || node.reported().contains(&words))
        .await;
    node.cancel("drain-1").await;
}

/// nova-compute does not respond, and does not count as down yet.
pub(crate) async fn silent(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--prefix", "vm"]).remove(0);
    let mut drain = Drain::new(bed, &limited(&[])).await;
    bed.pause(A);
    let first = drain.step(BeforeDrain).await;
    // Nova has begun a task that does not end.
    nova.act(&id, &json!({"rebuild": {"imageRef": bed.image()}}));
    let second = drain.step(BeforeDrain).await;
    bed.resume(A);
    let StepOutcome::Pending { progress, .. } = first else {
        panic!("{first:?}");
    };
    assert!(
        progress.starts_with("disabling nova-compute on compute-a: Nova, PUT /os-services/")
            && progress.contains("timed out"),
        "{progress}"
    );
    let StepOutcome::Pending { waiting_for, .. } = second else {
        panic!("{second:?}");
    };
    assert!(
        waiting_for[0].detail == "waiting for Nova's task rebuilding to end"
            && waiting_for[0].since.is_some(),
        "{waiting_for:?}"
    );
    nova.until_status(&id, "ACTIVE").await;
    drain.run(BeforeDrain).await.unwrap();
    drain.run(OnCancel).await.unwrap();
}

/// An incoming server is in no list of the host.
pub(crate) async fn names(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed
        .boot(1, &["--host", B, "--mode", "stuck", "--prefix", "guest"])
        .remove(0);
    nova.migrate_live(&id);
    nova.until("it is on its way", |nova| nova.migrations(&id) == ["running"])
        .await;
    let mut drain = Drain::new(bed, &limited(&[])).await;
    let mut named = Vec::new();
    let through = drain
        .run_while(BeforeDrain, |_, waiting| {
            named.extend(waiting.iter().cloned());
            waiting.is_empty()
        })
        .await;
    assert_eq!(through, Ok(false));
    let title = format!("server guest-0 ({}): incoming: ", &id[..8]);
    assert!(named[0].starts_with(&title), "{named:?}");
}

/// A Nova that is older than Pike.
pub(crate) async fn old_nova(bed: &Testbed) {
    let proxy = Proxy::start(bed.nova_url(), |seen| match seen.path.as_str() {
        "/v2.1/" => Fault::Change(|answer| answer.replace("\"2.100\"", "\"2.42\" ")),
        _ => Fault::Pass,
    });
    let setup = Setup {
        proxy: Some(&proxy.url),
        ..limited(&[])
    };
    let findings = Drain::new(bed, &setup).await.check().await;
    let found = findings
        .iter()
        .find(|finding| finding.severity == Severity::Error)
        .unwrap();
    assert_eq!(found.subject, "microversion", "{found:?}");
    assert!(
        found.message.contains("2.42") && found.fix.contains("upgrade Nova to 16 (Pike)"),
        "{found:?}"
    );
}
