//! A second drain of a node that is already out of service: a service that was disabled before it stays disabled.

use scupper_engine::HookPhase::{AfterUncordon, BeforeDrain, OnCancel};
use serde_json::json;

use crate::driver::{Drain, NODE, limited};
use crate::driver_mode::DriverMode;
use crate::nova::Nova;
use crate::rig;
use crate::testbed::{A, Testbed};

/// The reason why nova-compute is disabled; it must be disabled.
fn reason(nova: &Nova) -> String {
    let service = nova.service(A);
    assert_eq!(service["status"], "disabled");
    service["disabled_reason"].as_str().unwrap().to_owned()
}

/// A server whose migration never ends, and that the first drain does not move as it is shut off.
async fn sleeper(bed: &Testbed, nova: &Nova) -> String {
    let id = bed.boot(1, &["--mode", "stuck"]).remove(0);
    nova.act(&id, &json!({"os-stop": null}));
    nova.until("shut off", |nova| nova.server(&id)["status"] == "SHUTOFF")
        .await;
    id
}

/// The next drain has to move it.
async fn awake(nova: &Nova, id: &str) {
    nova.act(id, &json!({"os-start": null}));
    nova.until("it runs", |nova| nova.server(id)["status"] == "ACTIVE")
        .await;
}

/// Only its mark in Nova shows the first drain, as after a `kubectl uncordon` or a killed driver.
pub(crate) async fn marked(bed: &Testbed) {
    let nova = bed.nova();
    let id = sleeper(bed, &nova).await;
    Drain::new(bed, &limited(&[]))
        .await
        .run(BeforeDrain)
        .await
        .unwrap();
    let mark = reason(&nova);

    awake(&nova, &id).await;
    let mut second = Drain::new(bed, &limited(&[])).await;
    second.until_running(1).await;
    assert_eq!(reason(&nova), mark);
    second.run(OnCancel).await.unwrap();
    assert_eq!(reason(&nova), mark);
    assert_eq!(nova.migrations(&id), ["cancelled"], "what the second drain began");
    second.run(AfterUncordon).await.unwrap();
    assert_eq!(nova.service(A)["status"], "enabled");
}

/// A migration is aborted after this many seconds, and the drain fails.
const IMPATIENT: [(&str, &str); 1] = [("server-deadline-seconds", "2")];

/// A drain from a terminal; then the driver's: one that is cancelled while a server moves, and one that fails.
pub(crate) async fn in_driver_mode(bed: &Testbed) {
    let nova = bed.nova();
    let id = sleeper(bed, &nova).await;
    let mut node = rig::node(bed, &[], json!({})).await;
    let first = node.types(&["drain", NODE, "--local"]).ended().await;
    assert_eq!(first.code, Some(0), "{first:#?}");
    let mark = reason(&nova);

    awake(&nova, &id).await;
    node.start().await;
    node.begin_drain("second");
    nova.until("it moves", |nova| nova.migrations(&id) == ["running"])
        .await;
    node.cancel("second").await;
    assert_eq!(
        (reason(&nova), node.is_cordoned()),
        (mark.clone(), true),
        "{}",
        node.reported()
    );
    assert_eq!(nova.migrations(&id), ["cancelled"], "{}", node.reported());

    node.kill();
    node.configure(json!({}), rig::policies(bed, &IMPATIENT));
    node.start().await;
    assert_ne!(node.drain("third").await, "Succeeded", "{}", node.reported());
    assert_eq!(
        (reason(&nova), node.is_cordoned()),
        (mark, true),
        "{}",
        node.reported()
    );
    given_back(&node, &nova).await;
}

/// Ctrl-C cancels the second one.
pub(crate) async fn in_a_terminal(bed: &Testbed) {
    let nova = bed.nova();
    let id = sleeper(bed, &nova).await;
    let mut node = rig::node(bed, &[], json!({})).await;
    let first = node.types(&["drain", NODE, "--local"]).ended().await;
    assert_eq!(first.code, Some(0), "{first:#?}");
    let mark = reason(&nova);

    awake(&nova, &id).await;
    let mut second = node.types(&["drain", NODE, "--local"]);
    second.prints("openstack before-drain, running").await;
    nova.until("it moves", |nova| nova.migrations(&id) == ["running"])
        .await;
    second.interrupt();
    let second = second.ended().await;
    assert_ne!(second.code, Some(0), "{second:#?}");
    assert_eq!((reason(&nova), node.is_cordoned()), (mark, true), "{second:#?}");
    assert_eq!(nova.migrations(&id), ["cancelled"], "{second:#?}");

    let uncordon = node.types(&["uncordon", NODE, "--local"]).ended().await;
    assert_eq!(uncordon.code, Some(0), "{uncordon:#?}");
    assert_eq!(nova.service(A)["status"], "enabled", "{uncordon:#?}");
}

/// The first drain fails, which keeps the cordon; the driver is killed and started again; the second is cancelled.
pub(crate) async fn after_one_that_failed(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--mode", "stuck"]).remove(0);
    let mut node = rig::node(bed, &IMPATIENT, json!({})).await;
    node.start().await;
    assert_ne!(node.drain("first").await, "Succeeded", "{}", node.reported());
    let mark = reason(&nova);
    assert!(node.is_cordoned(), "{}", node.reported());
    node.kill();
    node.configure(json!({}), rig::policies(bed, &[]));
    node.start().await;

    node.begin_drain("second");
    nova.until("it moves", |nova| {
        nova.migrations(&id) == ["cancelled", "running"]
    })
    .await;
    node.cancel("second").await;
    assert_eq!(
        (reason(&nova), node.is_cordoned()),
        (mark, true),
        "{}",
        node.reported()
    );
    given_back(&node, &nova).await;
}

/// After a failure the cordon stays, and nova-compute stays disabled; with `rollback` and after a cancel neither does.
pub(crate) async fn follows_the_cordon(bed: &Testbed) {
    let nova = bed.nova();
    let id = bed.boot(1, &["--mode", "stuck"]).remove(0);
    let mut node = rig::node(bed, &IMPATIENT, json!({})).await;
    node.start().await;
    assert_ne!(node.drain("kept").await, "Succeeded", "{}", node.reported());
    reason(&nova);
    assert!(node.is_cordoned(), "{}", node.reported());
    given_back(&node, &nova).await;

    node.kill();
    node.configure(json!({"on-failure": "rollback"}), rig::policies(bed, &IMPATIENT));
    node.start().await;
    assert_ne!(
        node.drain("rolled-back").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    assert!(!node.is_cordoned(), "{}", node.reported());

    node.kill();
    node.configure(json!({}), rig::policies(bed, &[]));
    node.start().await;
    node.begin_drain("cancelled");
    let runs = |nova: &Nova| nova.migrations(&id).last().is_some_and(|last| last == "running");
    nova.until("it moves", runs).await;
    node.cancel("cancelled").await;
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    assert!(!node.is_cordoned(), "{}", node.reported());
}

async fn given_back(node: &DriverMode, nova: &Nova) {
    assert_eq!(
        node.uncordon("uncordon").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert_eq!(
        (nova.service(A)["status"].as_str(), node.is_cordoned()),
        (Some("enabled"), false),
        "{}",
        node.reported()
    );
}
