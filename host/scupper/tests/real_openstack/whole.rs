//! The whole driver: a LifecycleEvent on a simulated cluster and kubelet, a real Nova behind the node.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scupper_config::DrainSettings;
use scupper_driver::{KubeletPlugin, KubeletPluginOptions, PoliciesOptions};
use scupper_policy_spec::PolicySpec;
use scupper_simulator::api::{ApiServer, objects};
use scupper_simulator::kubelet::{Kubelet, KubeletHandle, Timing};
use scupper_simulator::{api, kubelet};

use crate::driver::{NODE, limited, scratch, spec};
use crate::limit::LIMIT;
use crate::testbed::{A, B, Testbed};

const DRIVER: &str = "drain.example";

struct Whole {
    api: ApiServer,
    kubelet: KubeletHandle,
    plugin: KubeletPlugin,
    output: Shared,
    _folder: tempfile::TempDir,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Whole {
    async fn start(bed: &Testbed, sla: Duration, more: &[(&str, &str)]) -> Self {
        let api = ApiServer::start(api::Options::default()).await.unwrap();
        let store = api.store();
        let compute = objects::pod("openstack", "nova-compute", NODE)
            .owner_replicaset("nova-compute")
            .label("application", "nova")
            .label("component", "compute");
        let plain = objects::pod("shop", "cart", NODE).owner_replicaset("cart");
        for object in [objects::node(NODE).build(), compute.build(), plain.build()] {
            store.apply(object).unwrap();
        }
        let folder = tempfile::tempdir_in(scratch()).unwrap();
        let mut config = api.client_config();
        config.auth_info.token = Some(format!("system:node:{NODE}").into());
        let client = kube::Client::try_from(config).unwrap();
        let options = kubelet::Options {
            timing: Timing::faster(20),
            ..kubelet::Options::new(client, NODE, folder.path().join("k"))
        };
        let kubelet = Kubelet::start(options).unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, api.kubeconfig()).unwrap();
        let output = Shared::default();
        let reported = output.clone();
        let plugin = KubeletPlugin::start_with_output(
            options_of(spec(bed, &limited(more)), &kubeconfig, kubelet.root(), sla),
            Arc::new(move || Box::new(reported.clone())),
        )
        .await
        .unwrap_or_else(|error| panic!("{error:?}"));
        let whole = Self {
            api,
            kubelet,
            plugin,
            output,
            _folder: folder,
        };
        whole
            .until("the transitions are published", || {
                whole
                    .api
                    .store()
                    .list("lifecycletransitions.lifecycle.k8s.io")
                    .len()
                    == 2
            })
            .await;
        whole
    }

    /// Requests a transition, and returns how its event ended.
    async fn transition(&self, event: &str, transition: &str) -> String {
        let object = objects::lifecycle_event(event, transition, NODE).build();
        self.api.store().apply(object).unwrap();
        let ended = |record: &kubelet::Record| record.finished().iter().any(|(name, _)| name == event);
        let waited = self.kubelet.wait_for(ended, LIMIT).await;
        waited.unwrap_or_else(|why| panic!("{why}\n{}", self.reported()));
        let finished = self.kubelet.record().finished();
        finished.into_iter().find(|(name, _)| name == event).unwrap().1
    }

    fn reported(&self) -> String {
        String::from_utf8_lossy(&self.output.0.lock().unwrap()).into_owned()
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = std::time::Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < LIMIT,
                "not in time: {what}\n{}",
                self.reported()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn options_of(policy: PolicySpec, kubeconfig: &Path, root: &Path, sla: Duration) -> KubeletPluginOptions {
    KubeletPluginOptions {
        connection: kubeconfig.to_owned().into(),
        driver_name: DRIVER.to_owned(),
        node_name: NODE.to_owned(),
        kubelet_root: root.to_owned(),
        drain: DrainSettings {
            time_limit: Some(sla),
            ..DrainSettings::default()
        },
        policies: PoliciesOptions {
            policies: vec![policy],
            cache: Some(scratch().join("compiled")),
            ..PoliciesOptions::default()
        },
        compiler: Some(env!("CARGO_BIN_EXE_scupper").into()),
        stop_grace: Duration::ZERO,
        ..KubeletPluginOptions::default()
    }
}

pub(crate) async fn drain(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(2, &["--seconds", "0.5"]);
    let whole = Whole::start(bed, Duration::from_secs(300), &[]).await;
    assert_eq!(
        whole.transition("drain-1", DRIVER).await,
        "Succeeded",
        "{}",
        whole.reported()
    );
    for id in &ids {
        assert_eq!((nova.host_of(id).as_str(), nova.migrations(id).len()), (B, 1));
    }
    let reported = whole.reported();
    let place = |words: &str| {
        reported
            .find(words)
            .unwrap_or_else(|| panic!("{words}\n{reported}"))
    };
    assert!(
        place("finished before-drain") < place("gone     shop/cart"),
        "pods left before the servers had:\n{reported}"
    );
    assert_eq!(nova.service(A)["status"], "disabled");
    let uncordon = format!("{DRIVER}-uncordon");
    assert_eq!(
        whole.transition("uncordon-1", &uncordon).await,
        "Succeeded",
        "{}",
        whole.reported()
    );
    assert_eq!(nova.service(A)["status"], "enabled");
    assert!(!whole.reported().contains("gAAAAA"), "a token is shown");
    whole.plugin.stop().await.unwrap();
}

/// The drain's deadline passes while a server is stuck: nothing is left half done. A busy machine has begun the migration
/// by then.
pub(crate) async fn cancel(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--mode", "stuck"]);
    let whole = Whole::start(bed, Duration::from_secs(24), &[("on-failure", "undo")]).await;
    let ended = whole.transition("drain-2", DRIVER).await;
    assert_ne!(ended, "Succeeded", "{}", whole.reported());
    nova.until("compute-a is enabled again", |nova| {
        nova.service(A)["status"] == "enabled"
    })
    .await;
    assert_eq!(nova.migrations(&ids[0]), ["cancelled"], "{}", whole.reported());
    assert_eq!(nova.host_of(&ids[0]), A);
    whole.plugin.stop().await.unwrap();
}
