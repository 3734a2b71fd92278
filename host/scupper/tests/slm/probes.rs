//! The probes' answers while the driver starts, works, and is cut off from the API server.

use std::time::Duration;

use scupper_simulator::api::{Action, Fault};

use crate::rig::Rig;
use crate::scrape::scrape;

const OK: &str = "HTTP/1.1 200 OK";
const UNAVAILABLE: &str = "HTTP/1.1 503";

#[tokio::test]
async fn the_driver_is_ready_when_the_kubelet_calls_it_and_the_watches_are_in_sync() {
    let rig = Rig::start().await;
    let driver = rig.driver(&["--metrics-address", "0"]).await;
    rig.until("the driver is ready", || {
        scrape(&driver, "GET", "/readyz").starts_with(OK)
    })
    .await;
    assert!(scrape(&driver, "GET", "/readyz").ends_with("\r\n\r\nok\n"));
    assert!(scrape(&driver, "POST", "/readyz").starts_with("HTTP/1.1 405"));
    // A broken watch is named, and does not kill the driver.
    let cut = Fault::new(Action::Status(500, None))
        .path("*/lifecycleevents")
        .user_agent("scupper");
    rig.api.faults([cut]);
    rig.api.break_watches();
    let mut reported = String::new();
    rig.until("the driver says that it is cut off", || {
        reported = scrape(&driver, "GET", "/readyz");
        reported.starts_with(UNAVAILABLE)
    })
    .await;
    let watch = "watch: /apis/lifecycle.k8s.io/v1alpha1/lifecycleevents: ";
    assert!(reported.contains(watch), "{reported}");
    assert!(scrape(&driver, "GET", "/healthz").starts_with(OK));
    rig.api.clear_faults();
    rig.until("the driver is ready again", || {
        scrape(&driver, "GET", "/readyz").starts_with(OK)
    })
    .await;
}

#[tokio::test]
async fn without_a_kubelet_the_driver_is_alive_and_not_ready() {
    let never = Duration::from_secs(3600);
    let rig = Rig::with(|options| options.timing.registry_tick = never).await;
    let driver = rig.spawn(&["--metrics-address", "0"]);
    rig.until("metrics are served", || {
        driver.log().contains("metrics are served")
    })
    .await;
    let mut reported = String::new();
    rig.until("only the kubelet is missing", || {
        reported = scrape(&driver, "GET", "/readyz");
        reported
            .split_once("\r\n\r\n")
            .is_some_and(|(_, lines)| lines.starts_with("kubelet: it has not "))
    })
    .await;
    assert!(reported.starts_with(UNAVAILABLE), "{reported}");
    assert!(scrape(&driver, "GET", "/healthz").starts_with(OK));
}
