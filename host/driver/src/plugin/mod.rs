//! The driver as a kubelet plugin: everything started in order, supervised, and ended.

mod condition_cleanup;
mod left_over_taint;
pub(crate) mod own_pod;
mod readiness;
mod startup;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::adapters::claim_api::LifecycleEventClaimApi;
use crate::adapters::{cordon_trigger, drain_request_trigger, metrics, transition_api};
use crate::lease::{HolderIdentity, NodeLeases};
use crate::manager::drain_settings::DrainSettingsSource;
use crate::manager::resume_point::{self, LeftDrain};
use crate::manager::{DrainManager, DrainManagerOptions};
use crate::reporter::Output;
use crate::runner::RunnerDeps;
use crate::runner::node_watch::watch_node;
use crate::{DriverError, KubeletPluginOptions, policies};
use scupper_cluster::ConnectOptions;
use scupper_report::{Health, Metrics, MetricsServer};
use scupper_traces::Traces;
use scupper_triggers::slm::{self, Registration, SlmDeps, SlmOptions};
use scupper_triggers::{DrainCommand, DriverState};

/// Commands that may wait for the manager.
const COMMANDS: usize = 64;

/// A running driver.
pub struct KubeletPlugin {
    stop: CancellationToken,
    task: JoinHandle<Result<(), DriverError>>,
    registration: watch::Receiver<Registration>,
    driver_state: watch::Receiver<DriverState>,
    metrics: Option<SocketAddr>,
}

impl KubeletPlugin {
    /// Starts the driver once the cluster has what it needs: the cluster first, then the policies, then the kubelet's
    /// sockets, so that it offers nothing that it cannot do yet.
    pub async fn start(options: KubeletPluginOptions) -> Result<Self, DriverError> {
        Self::start_with_output(options, Arc::new(|| Box::new(std::io::stdout()))).await
    }

    /// The same, with the drains' lines written to `output`.
    pub async fn start_with_output(
        options: KubeletPluginOptions,
        output: Output,
    ) -> Result<Self, DriverError> {
        let metrics = Metrics::new();
        let health = readiness::starting();
        let server = match options.metrics {
            Some(address) => Some(MetricsServer::start(address, metrics.clone(), health.clone()).await),
            None => None,
        };
        let server = server.transpose().map_err(DriverError::Metrics)?;
        let metrics_address = server.as_ref().map(MetricsServer::address);
        let traces = options.traces.as_ref();
        let traces = traces.map(|settings| Traces::start(settings, metrics.trace_spans_dropped()));
        let traces = traces.transpose().map_err(DriverError::Traces)?;
        let connect = ConnectOptions {
            connection: options.connection.clone(),
            eviction_timeout: options.drain.eviction_timeout,
            page_size: options.drain.page_size,
            evict_as: options
                .evict_as_node
                .then(|| format!("system:node:{}", options.node_name)),
            observer: Some(metrics::requests(&metrics)),
            ..ConnectOptions::default()
        };
        let node = options.node_name.clone();
        let patience = options.drain.engine.forbidden_timeout;
        let cluster = startup::wait_for(&health, patience, || startup::cluster(&connect, &node)).await?;
        tracing::info!(group = cluster.lifecycle_group(), "LifecycleEvents are served");
        let (served, is_served) = watch::channel(None);
        let kept = policies::keep(
            &options.policies,
            options.compiler.clone(),
            options.clock,
            &cluster,
            is_served,
            &node,
            &metrics,
        )
        .await?;
        let (driver_state, state) = watch::channel(DriverState::Idle);
        let (registration, registration_state) = watch::channel(Registration::Waiting);
        let drain_settings = Arc::new(DrainSettingsSource::new(&options, Arc::clone(&kept.catalogue)));
        let sla = drain_settings.now().time_limit;
        let (node_watch, nodes) = watch_node(&cluster, &node);
        let (reports, drain_reports) = mpsc::unbounded_channel();
        let deps = RunnerDeps {
            cluster: cluster.clone(),
            clock: options.clock,
            health: health.clone(),
            watched_node: Some(node_watch.node.clone()),
            policy_messages: kept.policy_messages.clone(),
            traces: traces.clone(),
        };
        let leases = NodeLeases {
            cluster: cluster.clone(),
            namespace: options.lease_namespace(),
            own: HolderIdentity::own(options.drain.engine.own_pod.as_ref()),
            forbidden_timeout: options.drain.engine.forbidden_timeout,
            observed: None,
        };
        let left = LeftDrain::new();
        let manager = DrainManagerOptions {
            left: left.clone(),
            catalogue: Arc::clone(&kept.catalogue),
            node: node.clone(),
            drain_settings: Arc::clone(&drain_settings),
            format: options.format,
            output,
            metrics: metrics.clone(),
            driver_state: driver_state.clone(),
            reports,
            leases: leases.clone(),
        };
        let manager = DrainManager::new(deps, manager);
        let stop = CancellationToken::new();
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (sole_instance, is_sole_instance) = watch::channel(false);
        let (seen, node_states) = watch::channel(None);
        left_over_taint::start(leases.cluster.clone(), node_states.clone());
        condition_cleanup::start(leases, state.clone(), node_states);
        let cordons = cordon_trigger::CordonTriggerDeps {
            nodes,
            commands: commands.clone(),
            driver_state: state.clone(),
            sole_instance: is_sole_instance.clone(),
            left: left.clone(),
            seen,
        };
        let cordons = cordon_trigger::start(&cluster, &options, cordons);
        let requests = drain_request_trigger::DrainRequestTriggerDeps {
            left: left.clone(),
            served,
            commands: commands.clone(),
            reports: drain_reports,
            sole_instance: is_sole_instance,
            metrics: metrics.clone(),
        };
        let config = drain_settings.drain_requests();
        let requests = drain_request_trigger::start(&cluster, &options, config, requests);
        let slm_deps = SlmDeps {
            events: readiness::synced(
                &health,
                transition_api::events(&cluster, &node, Arc::clone(&drain_settings)),
            ),
            transitions: transition_api::transitions(&cluster, &options.driver_name),
            commands,
            driver_state: state.clone(),
            registration,
            sole_instance,
            heartbeat: readiness::pulse(&health, "SLM trigger"),
            find_resume_point: resume_point::finder(&cluster, &node, left, driver_state),
            claims: Arc::new(LifecycleEventClaimApi {
                cluster: cluster.clone(),
                node: node.clone(),
                drain_settings,
            }),
        };
        readiness::started(&health, &cluster, registration_state.clone(), options.claimant);
        let api = Arc::new(transition_api::LifecycleTransitionApi { cluster, node });
        let slm_trigger = slm::run(slm_options(&options, sla), api, slm_deps, stop.clone());
        let task = tokio::spawn({
            let stop = stop.clone();
            async move {
                // Policies are reloaded as long as the driver runs.
                let _kept = kept;
                let _server = server;
                let _node_watch = node_watch;
                let ended = supervise(manager, inbox, tokio::spawn(slm_trigger), stop, health).await;
                cordons.abort();
                requests.abort();
                if let Some(traces) = traces {
                    traces.close().await;
                }
                ended
            }
        });
        Ok(Self {
            stop,
            task,
            registration: registration_state,
            driver_state: state,
            metrics: metrics_address,
        })
    }

    /// Runs until `stop` completes or the driver fails.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<(), DriverError> {
        tokio::select! {
            ended = &mut self.task => return join(ended),
            () = stop => {}
        }
        tracing::info!("stopping: nothing more is evicted; the next start continues a running drain");
        self.stop().await
    }

    /// Stops in order: a successor continues the drain.
    pub async fn stop(mut self) -> Result<(), DriverError> {
        self.stop.cancel();
        join((&mut self.task).await)
    }

    /// The state of the registration with the kubelet.
    pub fn registration(&self) -> watch::Receiver<Registration> {
        self.registration.clone()
    }

    /// Where metrics are served.
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// What the driver does at the moment.
    pub fn driver_state(&self) -> watch::Receiver<DriverState> {
        self.driver_state.clone()
    }
}

impl Drop for KubeletPlugin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes the triggers' commands to the manager until the SLM trigger has ended.
async fn supervise(
    mut manager: DrainManager,
    mut inbox: mpsc::Receiver<DrainCommand>,
    mut slm_trigger: JoinHandle<Result<(), slm::SlmError>>,
    stop: CancellationToken,
    health: Health,
) -> Result<(), DriverError> {
    let pulse = health.pulse("manager");
    let mut beat = tokio::time::interval(Health::BEAT);
    let mut paused = false;
    loop {
        pulse.beat();
        tokio::select! {
            biased;
            () = stop.cancelled(), if !paused => {
                paused = true;
                manager.pause();
            }
            closed = &mut slm_trigger => {
                manager.leave().await;
                return join(closed).map_err(DriverError::Slm);
            }
            Some(command) = inbox.recv() => manager.execute(command),
            ended = manager.ended() => {
                let outcome = join(ended.map(Ok::<_, std::convert::Infallible>));
                manager.close(outcome.unwrap_or_default());
            }
            _ = beat.tick() => {}
        }
    }
}

/// A panic in one of our tasks is a bug: the process must not continue without that task.
fn join<T, E>(joined: Result<Result<T, E>, tokio::task::JoinError>) -> Result<T, E> {
    match joined {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn slm_options(options: &KubeletPluginOptions, sla: Option<Duration>) -> SlmOptions {
    let instance = slm::unique_instance(options.clock.now());
    SlmOptions {
        kubelet_root: options.kubelet_root.clone(),
        sla,
        scope: if options.node_scope {
            slm::TransitionScope::Node
        } else {
            slm::TransitionScope::AllNodes
        },
        clock: options.clock,
        stop_grace: options.stop_grace,
        claimant: options.claimant,
        keep_finished: options.keep_finished,
        forbidden_timeout: options.drain.engine.forbidden_timeout,
        ..SlmOptions::new(&options.driver_name, &options.node_name, instance)
    }
}
