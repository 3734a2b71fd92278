//! A driver that starts before the cluster is prepared waits, reports the reason, and is not ready meanwhile.

use scupper_simulator::api::{Action, Fault};

use crate::driver::Driver;
use crate::objects::pod;
use crate::rig::{DRIVER, LIMIT, Rig};
use crate::scrape::scrape;

const UNAVAILABLE: &str = "HTTP/1.1 503";

fn fault(action: Action, path: &str) -> Fault {
    Fault::new(action).path(path).user_agent("scupper")
}

/// Starts it before the cluster exists, and waits until it reports the reason.
async fn waits(rig: &Rig, words: &[&str]) -> Driver {
    let mut driver = rig.spawn(&["--metrics-address", "0"]);
    rig.until("it says what it waits for", || {
        assert!(driver.is_running(), "it ended:\n{}", driver.log());
        driver.log().contains("the driver waits before it can start")
    })
    .await;
    for words in words {
        assert!(driver.log().contains(words), "{words}:\n{}", driver.log());
    }
    let reported = scrape(&driver, "GET", "/readyz");
    assert!(
        reported.starts_with(UNAVAILABLE) && reported.contains(words[0]),
        "{reported}"
    );
    assert!(scrape(&driver, "GET", "/healthz").starts_with("HTTP/1.1 200"));
    driver
}

/// The cluster is prepared: it drains.
async fn drains(rig: &Rig) {
    rig.api.clear_faults();
    rig.until("the driver is registered", || rig.registrations() == 1)
        .await;
    rig.apply(pod("a"));
    rig.until("its transition is there", || rig.get_transition(DRIVER).is_some())
        .await;
    rig.event("drain", DRIVER);
    assert_eq!(rig.end_of("drain").await, "Succeeded");
    assert!(rig.pod_names().is_empty());
}

/// As with `kubectl apply -k`: the CRDs are served some seconds after the DaemonSet's pods were created.
#[tokio::test]
async fn a_driver_that_starts_before_the_crds_waits_for_them() {
    let rig = Rig::start().await;
    rig.api
        .faults([fault(Action::Status(404, None), "/apis/lifecycle.*/v1alpha1")]);
    let _driver = waits(
        &rig,
        &["serves lifecycleevents neither", "deploy/crds/lifecycle.yaml"],
    )
    .await;
    drains(&rig).await;
}

#[tokio::test]
async fn a_driver_that_starts_before_the_api_server_waits_for_it() {
    let url = |rig: &Rig| rig.api.url();
    for action in [
        Action::DropBefore,
        Action::Status(503, None),
        Action::Status(401, None),
    ] {
        let rig = Rig::start().await;
        rig.api.faults([fault(action, "/version")]);
        let _driver = waits(&rig, &[&url(&rig)]).await;
        drains(&rig).await;
    }
}

#[tokio::test]
async fn a_driver_that_waits_to_start_stops_on_request() {
    let rig = Rig::start().await;
    rig.api.faults([fault(Action::DropBefore, "/version")]);
    let mut driver = waits(&rig, &["could not connect to the cluster"]).await;
    driver.terminate();
    assert_eq!(driver.ended(LIMIT).await.code(), Some(0));
}
