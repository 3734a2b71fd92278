//! What people read while a drain waits, and when it ends.

use scupper_engine::HookPhase::BeforeDrain;
use serde_json::json;

use crate::driver::{Drain, NODE, limited};
use crate::driver_mode::DriverMode;
use crate::nova::Nova;
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
    let down = "nova-compute on compute-a is down";
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
        let cause = end.find(down)?;
        Some(cause < end.find("waits for server")?)
    });
    assert_eq!(named, Some(true), "{reported}");
    let events = node.events("DeadlineExceeded");
    assert!(events.iter().any(|note| note.contains(down)), "{events:?}");
    node.until("a condition of the node names it", || {
        let object = node.api.store().get("nodes", "", NODE).unwrap();
        let conditions = object["status"]["conditions"].as_array();
        let mut messages = conditions.into_iter().flatten().map(|it| &it["message"]);
        messages.any(|message| message.as_str().is_some_and(|message| message.contains(down)))
    })
    .await;
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

/// nova-compute does not respond, and Nova has begun a task that does not end. Then the drain waits for a server that has been
/// on its way here since before.
pub(crate) async fn silent(bed: &Testbed) {
    let nova = bed.nova();
    let arrives = ["--host", B, "--mode", "stuck", "--prefix", "guest"];
    let guest = bed.boot(1, &arrives).remove(0);
    let id = bed.boot(1, &["--seconds", "0.5", "--prefix", "vm"]).remove(0);
    nova.migrate_live(&guest);
    nova.until("it is on its way", |nova| nova.migrations(&guest) == ["running"])
        .await;
    let mut node = rig::node(bed, &[], json!({})).await;
    node.start().await;
    let name = begin_while_silent(bed, &nova, &mut node).await;
    nova.act(&id, &json!({"rebuild": {"imageRef": bed.image()}}));
    let reset = format!("then reset it: openstack server set --state active {id}");
    let (id, guest) = (&id[..8], &guest[..8]);
    let task = format!("waits for server vm-0 ({id}): waiting for Nova's task rebuilding to end, for ");
    node.until("it waits for the task", || node.reported().contains(&task))
        .await;
    node.until("it names the next step", || node.reported().contains(&reset))
        .await;
    bed.resume(A);
    let incoming = format!("waits for server guest-0 ({guest}): incoming: ");
    node.until("it waits for the other one", || {
        node.reported().contains(&incoming)
    })
    .await;
    let reported = node.reported();
    let line = reported.lines().find(|line| line.contains("timed out")).unwrap();
    let request = "disabling nova-compute on compute-a: Nova, PUT /os-services/";
    assert!(line.contains(request), "{line}");
    node.cancel(&name).await;
}

/// Begins a drain whose first request times out. Nova calls a service down that has been silent for 8 s, and on a busy machine
/// the drain may come to that request only then: it is begun anew.
async fn begin_while_silent(bed: &Testbed, nova: &Nova, node: &mut DriverMode) -> String {
    for attempt in 1..=5 {
        let name = format!("drain-{attempt}");
        let downs = |node: &DriverMode| {
            node.reported()
                .matches("nova-compute on compute-a is down")
                .count()
        };
        let before = downs(node);
        bed.pause(A);
        node.begin_drain(&name);
        node.until("a request has timed out", || {
            node.reported().contains("timed out") || downs(node) > before
        })
        .await;
        if node.reported().contains("timed out") {
            return name;
        }
        bed.resume(A);
        nova.until("it counts as up", |nova| nova.service(A)["state"] == "up")
            .await;
        node.cancel(&name).await;
    }
    panic!("it was too slow each time: {}", node.reported());
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
    let mut node = rig::node(bed, &[], json!({})).await;
    node.configure(json!({}), rig::policies_at(bed, &proxy.url, &[]));
    let doctor = node.types(&["doctor", "--node", NODE]).ended().await;
    let found = doctor
        .stdout
        .lines()
        .position(|line| line.contains("microversion") && line.contains("2.42"));
    let fix = "upgrade Nova to 16 (Pike) or later";
    assert!(
        found.is_some_and(|at| doctor
            .stdout
            .lines()
            .nth(at + 1)
            .is_some_and(|line| line.contains(fix))),
        "{doctor:#?}"
    );
    node.start().await;
    node.until("the driver has checked it", || {
        node.reported().contains("check of microversion: ")
    })
    .await;
    assert!(node.reported().contains(fix), "{}", node.reported());
    assert_ne!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    let reported = node.reported();
    let end = reported.lines().find(|line| line.contains("PolicyFailed"));
    assert!(end.is_some_and(|end| end.contains("2.42")), "{reported}");
    assert!(!node.is_cordoned(), "{reported}");
    assert_eq!(bed.nova().service(A)["status"], "enabled");
}
