//! Scenario 20: half an hour without a call. The kubelet's channel becomes idle and a claim does not wake it, so the
//! driver renews its endpoint in time. The clock is paused and advanced by hand; driver, kubelet and API server run in
//! this process, over their real sockets.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use kube::Client;
use scupper_common::clock::Clock;
use scupper_config::GivenSettings;
use scupper_driver::{KubeletPlugin, KubeletPluginOptions, PoliciesOptions};
use scupper_engine::Time;
use scupper_policy_reload::PolicySource;
use scupper_simulator::api::{self, ApiServer};
use scupper_simulator::kubelet::{Kubelet, Options};
use serde_json::json;
use tokio::time::{Instant, advance};

use crate::rig::{DRIVER, NODE};

/// While this exists, the paused clock advances only when the test advances it: sockets take real time.
fn hold_clock() -> mpsc::Sender<()> {
    let (end, ended) = mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || ended.recv());
    end
}

/// Advances the clock, and gives sockets the real time that they need for due work.
async fn step(time: Duration) {
    advance(time).await;
    let settle = || std::thread::sleep(Duration::from_millis(4));
    tokio::task::spawn_blocking(settle).await.unwrap();
}

/// Advances the clock until the condition holds.
async fn step_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        step(Duration::from_millis(250)).await;
    }
}

/// Without a policy or a file. `scans` counts how often the driver looks for changes.
fn plugin_options(kubeconfig: &Path, root: &Path, scans: &Arc<AtomicU32>) -> KubeletPluginOptions {
    let scans = Arc::clone(scans);
    let none = move || {
        scans.fetch_add(1, Ordering::SeqCst);
        Ok(Vec::new())
    };
    KubeletPluginOptions {
        policies: PoliciesOptions {
            source: Some(PolicySource::of(Vec::new(), none)),
            ..PoliciesOptions::default()
        },
        drain_flags: Some(GivenSettings::default()),
        connection: kubeconfig.to_owned().into(),
        driver_name: DRIVER.to_owned(),
        node_name: NODE.to_owned(),
        kubelet_root: root.to_owned(),
        clock: Clock::starting_at(Time::from_millis(1_790_000_000_000)),
        ..KubeletPluginOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_20_idle_for_31_minutes_and_then_a_drain() {
    let _clock = hold_clock();
    let api = ApiServer::start(api::Options::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, api.kubeconfig()).unwrap();
    for object in [
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}),
        crate::objects::pod("a"),
    ] {
        api.store().apply(object).unwrap();
    }
    let client = Client::try_from(api.client_config()).unwrap();
    let root = folder.path().join("kubelet");
    let scans = Arc::new(AtomicU32::new(0));
    let kubelet = Kubelet::start(Options::new(client, NODE, &root)).unwrap();
    let start = KubeletPlugin::start_with_output(
        plugin_options(&kubeconfig, &root, &scans),
        Arc::new(|| Box::new(std::io::sink())),
    );
    let plugin = tokio::spawn(start);
    step_until("the driver starts", Duration::from_secs(30), || {
        plugin.is_finished()
    })
    .await;
    let plugin = plugin.await.unwrap().unwrap();
    step_until("the driver is registered", Duration::from_secs(30), || {
        kubelet.registered().contains_key(DRIVER)
    })
    .await;
    let first = kubelet.registered();

    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(31 * 60) {
        step(Duration::from_secs(1)).await;
    }
    let scans = scans.load(Ordering::SeqCst);
    assert!(
        scans <= 2 * 31 + 4,
        "{scans} scans in half an hour, without anything to scan"
    );
    assert_ne!(kubelet.registered(), first, "the endpoint was renewed");
    assert_eq!(kubelet.registered()[DRIVER].len(), 1, "and the old one removed");

    let event = json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": "drain"},
        "spec": {"transitionName": DRIVER, "bindingNode": NODE}, "status": {"claimStatus": "Pending"},
    });
    api.store().apply(event).unwrap();
    let finished = || !kubelet.record().finished().is_empty();
    step_until("the event ends", Duration::from_secs(120), finished).await;
    assert_eq!(
        kubelet.record().finished(),
        [("drain".to_owned(), "Succeeded".to_owned())]
    );
    assert!(api.store().list("pods").is_empty());
    drop(plugin);
}
