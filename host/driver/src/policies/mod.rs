//! Loads the configured policies: once for a command; for the driver with reloads.

pub(crate) mod check_policies;
mod code_cache;
pub(crate) mod environment_check;
mod policy_events;

pub use policy_events::ACTIVE_POLICIES;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Notify, mpsc, watch};

use crate::adapters::metrics::PolicyMetricsObserver;
use crate::adapters::policy_access::{PolicyClusterAccess, ServedReceiver};
use crate::policies::code_cache::CodeCacheDir;
use crate::{DriverError, KubeletPluginOptions, PoliciesOptions};
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_common::tasks::Tasks;
use scupper_metrics::Metrics;
use scupper_policy::{Endpoint, Network, Policies, Runtime, RuntimeOptions, Secrets, own_program};
use scupper_policy_reload::{Catalogue, Control, PolicySource, Reloader, StartError};
use scupper_runner::reporter::policy_messages::PolicyMessages;
use scupper_triggers::drain_request::ServedRequests;

/// Where an image has native code of its policies (`deploy/rootfs`).
const SHIPPED: &str = "/usr/share/scupper/native";

/// Policies that a command loads once.
pub struct LoadedPolicies {
    /// The policies.
    pub policies: Policies,
    /// Their messages about nodes.
    pub(crate) policy_messages: PolicyMessages,
    /// Where their compiled code is.
    _cache: CodeCacheDir,
}

/// Policies that are reloaded.
pub(crate) struct ReloadingPolicies {
    pub(crate) catalogue: Arc<Catalogue>,
    /// Their messages about the node.
    pub(crate) policy_messages: PolicyMessages,
    /// Where their compiled code is.
    _cache: CodeCacheDir,
}

/// Loads the policies once. `served`: the DrainRequests that they may ask about.
pub async fn load(
    options: &PoliciesOptions,
    compiler: Option<PathBuf>,
    clock: Clock,
    cluster: &Cluster,
    served: Option<ServedRequests>,
) -> Result<LoadedPolicies, DriverError> {
    let (runtime, cache) = runtime(options, compiler, clock, network(cluster))?;
    let specs = match &options.source {
        Some(source) => {
            let read = (source.read)();
            let read = read.map_err(|reason| DriverError::Reload(StartError::Configuration(reason)));
            read?.policies
        }
        None => options.policies.clone(),
    };
    let messages = PolicyMessages::default();
    let served = watch::Sender::new(served).subscribe();
    let policies = Policies::load(&runtime, &specs, access(cluster, served, &messages))
        .await
        .map_err(DriverError::Policies)?;
    Ok(LoadedPolicies {
        policies,
        policy_messages: messages,
        _cache: cache,
    })
}

/// Loads the policies and starts the tasks that reload them when they change. Events and an annotation of the node report
/// it.
pub(crate) async fn keep(
    driver: &KubeletPluginOptions,
    cluster: &Cluster,
    served: ServedReceiver,
    metrics: &Metrics,
    tasks: &mut Tasks<DriverError>,
) -> Result<ReloadingPolicies, DriverError> {
    let (options, clock, node) = (&driver.policies, driver.clock, &driver.node_name);
    let (runtime, cache) = runtime(options, driver.compiler.clone(), clock, network(cluster))?;
    let runtime = runtime
        .observed_by(Arc::new(PolicyMetricsObserver(metrics.clone())))
        .marking_compilations(env::var("POD_UID").unwrap_or_default());
    let fixed = || PolicySource::fixed(options.policies.clone());
    let source = options.source.clone().unwrap_or_else(fixed);
    let (notices, heard) = mpsc::unbounded_channel();
    let messages = PolicyMessages::default();
    let started = Reloader::start(
        Arc::new(runtime),
        access(cluster, served, &messages),
        source,
        options.reload.clone(),
        notices,
    );
    let (catalogue, reloader) = started.await.map_err(DriverError::Reload)?;
    tasks.spawn("policy reloader", reloader.run());
    if let Some(control) = control(options.reload.state.as_deref(), &catalogue).await {
        tasks.spawn("policy control socket", control.run());
    }
    let changed = Arc::new(Notify::new());
    let reported = policy_events::run(
        cluster.clone(),
        node.clone(),
        Arc::clone(&catalogue),
        metrics.clone(),
        heard,
        Arc::clone(&changed),
    );
    let checking = environment_check::watch(
        cluster.clone(),
        node.clone(),
        Arc::clone(&catalogue),
        clock,
        changed,
    );
    tasks.spawn("policy notices", reported);
    tasks.spawn("policy checks", checking);
    Ok(ReloadingPolicies {
        catalogue,
        policy_messages: messages,
        _cache: cache,
    })
}

/// Serves `scupper policy list` and `rollback`. A driver without that socket still drains.
async fn control(state: Option<&Path>, catalogue: &Arc<Catalogue>) -> Option<Control> {
    let state = state?;
    match Control::open(state, Arc::clone(catalogue)).await {
        Ok(control) => Some(control),
        Err(error) => {
            tracing::warn!(directory = %state.display(), %error, "`scupper policy list` and `rollback` do not work");
            None
        }
    }
}

fn access(cluster: &Cluster, served: ServedReceiver, messages: &PolicyMessages) -> Arc<PolicyClusterAccess> {
    Arc::new(PolicyClusterAccess::new(
        cluster.clone(),
        served,
        messages.clone(),
    ))
}

/// The runtime of policies, and the directory that must live as long.
pub(crate) fn runtime(
    options: &PoliciesOptions,
    compiler: Option<PathBuf>,
    clock: Clock,
    network: Network,
) -> Result<(Runtime, CodeCacheDir), DriverError> {
    let cache = CodeCacheDir::open(options.cache.as_deref())?;
    let runtime = Runtime::new(RuntimeOptions {
        cache: cache.path().to_owned(),
        shipped: Some(SHIPPED.into()),
        compiler: compiler.unwrap_or_else(own_program),
        clock,
        network,
        secrets: Secrets::default(),
    })
    .map_err(DriverError::Runtime)?;
    Ok((runtime, cache))
}

/// Forbids policies' requests to the API server, under every address that is known.
fn network(cluster: &Cluster) -> Network {
    let ours = cluster.server().map(|(host, port)| (host.to_owned(), port));
    let service = env::var("KUBERNETES_SERVICE_HOST").ok();
    let port = env::var("KUBERNETES_SERVICE_PORT").ok();
    let port = port.and_then(|port| port.parse().ok()).unwrap_or(443);
    let endpoints = ours.into_iter().chain(service.map(|host| (host, port)));
    Network {
        forbidden: endpoints.map(|(host, port)| Endpoint { host, port }).collect(),
        ..Network::default()
    }
}
