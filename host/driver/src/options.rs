//! Options of the driver and of loading policies.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use scupper_cluster::{Connection, LEASE_NAMESPACE};
use scupper_common::clock::Clock;
use scupper_config::{DrainSettings, GivenSettings};
use scupper_policy_reload::{PolicySource, ReloadOptions};
use scupper_policy_spec::PolicySpec;
use scupper_recording::RecordingTarget;
use scupper_report::Format;
use scupper_traces::TraceSettings;
use scupper_triggers::slm::Claimant;

/// The policies to load, in chain order.
#[derive(Clone, Debug, Default)]
pub struct PoliciesOptions {
    /// In chain order.
    pub policies: Vec<PolicySpec>,
    /// The file that lists them, if it can change; it replaces `policies` and is read again and again.
    pub source: Option<PolicySource>,
    /// Where compiled code is kept; `None`: a directory of this process that goes with it.
    pub cache: Option<PathBuf>,
    /// How they are kept up to date while the driver runs.
    pub reload: ReloadOptions,
}

/// How the kubelet plugin runs.
#[derive(Clone, Debug)]
pub struct KubeletPluginOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The driver's name.
    pub driver_name: String,
    /// Our node.
    pub node_name: String,
    /// The kubelet's root directory.
    pub kubelet_root: PathBuf,
    /// Publish transitions for this node only.
    pub node_scope: bool,
    /// Who claims LifecycleEvents.
    pub claimant: Claimant,
    /// Evict pods as the node's own user, `system:node:NAME`, by impersonation.
    pub evict_as_node: bool,
    /// How long finished LifecycleEvents that the driver claimed are kept.
    pub keep_finished: Duration,
    /// The settings of drains.
    pub drain: DrainSettings,
    /// What the command line gives of them, if a configuration file has the rest and can change. `None`: `drain` says it
    /// all.
    pub drain_flags: Option<GivenSettings>,
    /// What to load.
    pub policies: PoliciesOptions,
    /// Where metrics are served; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The trace collector; `None`: none.
    pub traces: Option<TraceSettings>,
    /// Where recordings of drains go.
    pub recordings: RecordingTarget,
    /// Format of the drains' lines on standard output.
    pub format: Format,
    /// The clock.
    pub clock: Clock,
    /// The program that compiles policies when called with `compile-policy`; `None`: this one.
    pub compiler: Option<PathBuf>,
    /// How long the driver answers after the request to stop.
    pub stop_grace: Duration,
    /// Where the leases of nodes are; `None`: in the driver's own namespace.
    pub lease_namespace: Option<String>,
}

impl KubeletPluginOptions {
    /// Where the leases of nodes are.
    pub fn lease_namespace(&self) -> String {
        let own = self
            .drain
            .engine
            .own_pod
            .as_ref()
            .map(|pod| pod.namespace.clone());
        let named = self.lease_namespace.clone().or(own);
        named.unwrap_or_else(|| LEASE_NAMESPACE.to_owned())
    }
}

impl Default for KubeletPluginOptions {
    fn default() -> Self {
        Self {
            connection: Connection::default(),
            driver_name: "drain.slm.k8s.io".to_owned(),
            node_name: String::new(),
            kubelet_root: "/var/lib/kubelet".into(),
            node_scope: false,
            claimant: Claimant::default(),
            evict_as_node: false,
            keep_finished: Duration::ZERO,
            drain: DrainSettings::default(),
            drain_flags: None,
            policies: PoliciesOptions::default(),
            metrics: None,
            traces: None,
            recordings: RecordingTarget::default(),
            format: Format::Human,
            clock: Clock::System,
            compiler: None,
            stop_grace: Duration::from_secs(25),
            lease_namespace: None,
        }
    }
}
