//! The cluster of all demos: a simulated API server and kubelet, the real driver, and LifecycleEvents.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::DemoOutput;
use scupper_simulator::api::{self, ApiServer, Store, objects};
use scupper_simulator::kubelet::{self, Kubelet, KubeletHandle, Timing};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use scupper::{OptionsError, traces_from_env};
use scupper_config::GivenSettings;
use scupper_driver::{DriverError, KubeletPlugin, KubeletPluginOptions, PoliciesOptions};
use scupper_report::Format;
use scupper_runner::reporter::Output;

/// The driver's name, and that of its drain transition.
pub(super) const DRIVER: &str = "drain.slm.k8s.io";
/// Its other transition.
pub(super) const UNCORDON: &str = "drain.slm.k8s.io-uncordon";
/// The Events that policies with servers may emit.
pub(super) const EVENTS: &str = "events:node";
/// A demo takes half a minute; one that takes longer is stuck.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    #[error("could not start the simulated API server")]
    Server(#[source] api::StartError),
    #[error("could not fill the simulated cluster")]
    Scene(#[source] api::StoreError),
    #[error("could not reach the simulated API server")]
    Client(#[source] kube::Error),
    #[error("could not start the simulated kubelet")]
    Kubelet(#[source] kubelet::StartError),
    #[error("could not create a directory for the demo")]
    Folder(#[source] std::io::Error),
    #[error("could not start the driver")]
    Driver(#[source] DriverError),
    #[error(transparent)]
    Environment(OptionsError),
    #[error("{event} did not end: {message}")]
    Stuck { event: String, message: String },
    #[error("`{typed}` failed: {message}")]
    Command { typed: String, message: String },
    #[error("the real Slurm failed: {0}")]
    Slurm(String),
    #[error("the real OpenStack failed: {0}")]
    OpenStack(String),
    #[error("could not listen for signals")]
    Signals(#[source] std::io::Error),
    #[error("stopped")]
    Stopped,
}

/// A node with its driver.
pub(super) struct DemoCluster {
    kubelet: KubeletHandle,
    plugin: KubeletPlugin,
    /// Dropped after its clients.
    cluster: Arc<ApiServer>,
    node: &'static str,
    folder: TempDir,
}

impl DemoCluster {
    /// Starts the kubelet and the driver of a node of this cluster.
    pub(super) async fn set(
        cluster: ApiServer,
        node: &'static str,
        policies: PoliciesOptions,
        output: &DemoOutput,
    ) -> Result<Self, DemoError> {
        let of_drains = output.clone();
        let lines = Arc::new(move || of_drains.lines());
        Self::set_with_output(Arc::new(cluster), node, policies, output.format, lines).await
    }

    /// The same on a cluster with other nodes, with the drains' lines written to `output`.
    pub(super) async fn set_with_output(
        cluster: Arc<ApiServer>,
        node: &'static str,
        policies: PoliciesOptions,
        format: Format,
        output: Output,
    ) -> Result<Self, DemoError> {
        let folder = tempfile::Builder::new()
            .prefix("scupper-")
            .tempdir()
            .map_err(DemoError::Folder)?;
        let client = kube::Client::try_from(cluster.client_config()).map_err(DemoError::Client)?;
        // A real kubelet checks every 10 s; this one every second.
        let options = kubelet::Options {
            timing: Timing::faster(10),
            ..kubelet::Options::new(client, node, folder.path())
        };
        let kubelet = Kubelet::start(options).map_err(DemoError::Kubelet)?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig()).map_err(DemoError::Folder)?;
        let options = KubeletPluginOptions {
            connection: kubeconfig.into(),
            driver_name: DRIVER.to_owned(),
            node_name: node.to_owned(),
            kubelet_root: folder.path().to_owned(),
            // The section `drain` of the file.
            drain_flags: policies.source.is_some().then(GivenSettings::default),
            policies,
            traces: traces_from_env().map_err(DemoError::Environment)?,
            format,
            stop_grace: Duration::ZERO,
            ..KubeletPluginOptions::default()
        };
        let plugin = KubeletPlugin::start_with_output(options, output)
            .await
            .map_err(DemoError::Driver)?;
        let demo_cluster = Self {
            kubelet,
            plugin,
            cluster,
            node,
            folder,
        };
        demo_cluster.offered().await?;
        Ok(demo_cluster)
    }

    /// Ends the driver.
    pub(super) async fn clear(self) -> Result<(), DemoError> {
        self.plugin.stop().await.map_err(DemoError::Driver)
    }

    /// Waits until the driver has published its transitions.
    async fn offered(&self) -> Result<(), DemoError> {
        let store = self.cluster.store();
        let published = || store.list("lifecycletransitions.lifecycle.k8s.io").len() >= 2;
        until(published).await.ok_or_else(|| DemoError::Stuck {
            event: "the driver's registration".to_owned(),
            message: "no transitions".to_owned(),
        })
    }

    /// Requests a transition and waits until the kubelet has ended the event.
    pub(super) async fn transition(&self, event: &str, transition: &str) -> Result<(), DemoError> {
        self.ask(event, transition)?;
        self.ended(event).await
    }

    /// Requests a transition.
    pub(super) fn ask(&self, event: &str, transition: &str) -> Result<(), DemoError> {
        let object = objects::lifecycle_event(event, transition, self.node).build();
        self.cluster.store().apply(object).map_err(DemoError::Scene)?;
        Ok(())
    }

    /// Waits until the kubelet has ended an event.
    pub(super) async fn ended(&self, event: &str) -> Result<(), DemoError> {
        let stuck = |message| DemoError::Stuck {
            event: event.to_owned(),
            message,
        };
        let ended = |record: &kubelet::Record| record.finished().iter().any(|(name, _)| name == event);
        let waited = self.kubelet.wait_for(ended, LIMIT).await;
        waited.map_err(stuck)?;
        let finished = self.kubelet.record().finished();
        let status = finished
            .into_iter()
            .find(|(name, _)| name == event)
            .map(|(_, status)| status);
        if status.as_deref() == Some("Succeeded") {
            return Ok(());
        }
        let message = format!("the kubelet says {}", status.unwrap_or_default());
        Err(stuck(message))
    }

    /// The connection to the cluster.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Starts counting requests.
    pub(super) fn mark(&self) -> usize {
        self.cluster.mark()
    }

    /// The drain's requests to the API server, in one line.
    pub(super) fn requests(&self, mark: usize) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let ours = self
            .cluster
            .requests_since(mark)
            .into_iter()
            .filter(|request| request.user_agent.starts_with("scupper"));
        for request in ours {
            let subresource = if request.subresource.is_empty() {
                String::new()
            } else {
                format!("/{}", request.subresource)
            };
            *counts
                .entry(format!("{} {}{subresource}", request.verb, request.resource))
                .or_default() += 1;
        }
        let total: usize = counts.values().sum();
        let parts: Vec<_> = counts
            .into_iter()
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        format!(
            "            API requests of the driver: {total} ({})",
            parts.join(", ")
        )
    }
}

/// A node with a pod of the neighbour's and one of a shop's, which are evicted, and an exporter, which is kept.
pub(super) fn worker(store: &Store, node: &str, own: objects::Object) -> Result<(), api::StoreError> {
    let site = objects::pod("web", "site-1", node)
        .owner_replicaset("site")
        .takes(0.4);
    let exporter = objects::pod("kube-system", "node-exporter-x7k2p", node).daemonset("node-exporter");
    let pods = [own, site, exporter].map(objects::Object::build);
    std::iter::once(objects::node(node).build())
        .chain(pods)
        // After its pod, or it would create another.
        .chain([objects::daemon_set("kube-system", "node-exporter").build()])
        .try_for_each(|object| store.apply(object).map(drop))
}

/// Completes when a signal asks the program to end. From now on signals do nothing else.
pub(super) fn interrupts() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Waits until this holds; `None`: the demo's time limit passed first.
pub(super) async fn until(holds: impl Fn() -> bool) -> Option<()> {
    let waited = tokio::time::timeout(LIMIT, async {
        while !holds() {
            tokio::time::sleep(POLL).await;
        }
    });
    waited.await.ok()
}

/// A task that ends with its owner.
pub(super) struct AbortOnDrop(pub(super) tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
