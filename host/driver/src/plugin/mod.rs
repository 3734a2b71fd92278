//! The driver as a kubelet plugin: everything started in order, supervised, and ended.

mod condition_cleanup;
mod left_over_taint;
mod left_to_undo;
pub(crate) mod own_pod;
mod plan_answers;
mod readiness;
mod startup;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::adapters::claim_api::LifecycleEventClaimApi;
use crate::adapters::{cordon_trigger, drain_request_trigger, metrics, transition_api};
use crate::manager::drain_settings::DrainSettingsSource;
use crate::manager::resume_point::{self, LeftDrain};
use crate::manager::{DrainManager, DrainManagerOptions};
use crate::{DriverError, KubeletPluginOptions, policies};
use scupper_cluster::ConnectOptions;
use scupper_common::health::Health;
use scupper_common::tasks::Tasks;
use scupper_lease::{HolderIdentity, NodeLeases};
use scupper_metrics::{Metrics, serve_metrics};
use scupper_runner::RunnerDeps;
use scupper_runner::node_watch::watch_node;
use scupper_runner::reporter::Output;
use scupper_traces::Traces;
use scupper_triggers::slm::{self, Registration, SLM_TRIGGER, SlmDeps, SlmOptions};
use scupper_triggers::{DrainCommand, DrainReportSender, DriverChanges, DriverState};

/// Commands that may wait for the manager.
const COMMANDS: usize = 64;
/// Time limit for the end of the trace exporter, which limits its last requests to less.
const EXPORTED_WITHIN: Duration = Duration::from_secs(3);

/// A running driver.
pub struct KubeletPlugin {
    stop: CancellationToken,
    task: JoinHandle<Result<(), DriverError>>,
    tasks: Vec<(&'static str, AbortHandle)>,
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
        let mut tasks = Tasks::default();
        let mut metrics_address = None;
        if let Some(address) = options.metrics {
            let served = serve_metrics(address, metrics.clone(), health.clone()).await;
            let (address, serving) = served.map_err(DriverError::Metrics)?;
            tasks.spawn("metrics and probes", serving);
            metrics_address = Some(address);
        }
        let traces = options.traces.as_ref();
        let traces = traces.map(|settings| Traces::new(settings, metrics.trace_spans_dropped()));
        let (traces, exporter) = traces.transpose().map_err(DriverError::Traces)?.unzip();
        if let Some(exporter) = exporter {
            tasks.spawn_closing("trace exporter", EXPORTED_WITHIN, exporter);
        }
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
        let kept = policies::keep(&options, &cluster, is_served, &metrics, &mut tasks).await?;
        let (driver_state, state) = watch::channel(DriverState::Idle);
        let (registration, registration_state) = watch::channel(Registration::Waiting);
        let drain_settings = Arc::new(DrainSettingsSource::new(&options, Arc::clone(&kept.catalogue)));
        let sla = drain_settings.sla();
        let (watching, watched_node, nodes) = watch_node(&cluster, &node);
        tasks.spawn("node watch", watching);
        let mut reports = DrainReportSender::default();
        let drain_reports = reports.subscribe();
        let mut driver_changes = || DriverChanges::new(reports.subscribe(), state.clone());
        let (cordon_changes, slm_changes) = (driver_changes(), driver_changes());
        let deps = RunnerDeps {
            cluster: cluster.clone(),
            clock: options.clock,
            health: health.clone(),
            watched_node: Some(watched_node),
            policy_messages: kept.policy_messages.clone(),
            traces: traces.clone(),
            recordings: options.recordings.clone(),
        };
        let leases = NodeLeases {
            cluster: cluster.clone(),
            namespace: options.lease_namespace(),
            own: HolderIdentity::own(options.drain.engine.own_pod.as_ref()),
            forbidden_timeout: options.drain.engine.forbidden_timeout,
            is_of_a_command: false,
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
        let mut manager = DrainManager::new(deps, manager);
        let stop = CancellationToken::new();
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (sole_instance, is_sole_instance) = watch::channel(false);
        let (seen, node_states) = watch::channel(None);
        let taint = left_over_taint::run(leases.cluster.clone(), node_states.clone());
        tasks.spawn("notice of a left taint", taint);
        let left_to_undo = left_to_undo::run(
            leases.clone(),
            state.clone(),
            node_states.clone(),
            metrics.clone(),
        );
        tasks.spawn("notice of what is left to undo", left_to_undo);
        let answers = plan_answers::PlanAnswers {
            cluster: cluster.clone(),
            clock: options.clock,
            catalogue: Arc::clone(&kept.catalogue),
            drain_settings: Arc::clone(&drain_settings),
        };
        tasks.spawn("answers to plan checks", answers.run(node_states.clone()));
        let cleanup = condition_cleanup::run(leases, state.clone(), node_states);
        tasks.spawn("condition cleanup", cleanup);
        let cordons = cordon_trigger::CordonTriggerDeps {
            nodes,
            commands: commands.clone(),
            driver_changes: cordon_changes,
            sole_instance: is_sole_instance.clone(),
            sla,
            left: left.clone(),
            seen,
        };
        tasks.spawn("cordon trigger", cordon_trigger::run(&cluster, &options, cordons));
        let requests = drain_request_trigger::DrainRequestTriggerDeps {
            left: left.clone(),
            served,
            commands: commands.clone(),
            reports: drain_reports,
            sole_instance: is_sole_instance,
            metrics: metrics.clone(),
        };
        let config = drain_settings.drain_requests();
        let requests = drain_request_trigger::run(&cluster, &options, config, requests);
        tasks.spawn("DrainRequest trigger", requests);
        let slm_deps = SlmDeps {
            events: readiness::synced(
                &health,
                transition_api::events(&cluster, &node, Arc::clone(&drain_settings)),
            ),
            transitions: transition_api::transitions(&cluster, &options.driver_name),
            commands,
            driver_changes: slm_changes,
            registration,
            sole_instance,
            heartbeat: readiness::pulse(&health, "SLM trigger"),
            find_resume_point: resume_point::finder(&cluster, &node, options.clock, left, driver_state),
            claims: Arc::new(LifecycleEventClaimApi {
                cluster: cluster.clone(),
                node: node.clone(),
                drain_settings,
            }),
        };
        readiness::started(&health, &cluster, registration_state.clone(), options.claimant);
        let api = Arc::new(transition_api::LifecycleTransitionApi { cluster, node });
        slm::start(
            slm_options(&options, sla),
            api,
            slm_deps,
            stop.clone(),
            &mut tasks,
        )?;
        let running = tasks.running();
        let task = tokio::spawn({
            let stop = stop.clone();
            async move {
                // Policies' compiled code is kept as long as the driver runs.
                let _kept = kept;
                let ended = supervise(&mut manager, inbox, &mut tasks, &stop, &health).await;
                manager.leave().await;
                // After an error, the SLM trigger still closes its sockets.
                stop.cancel();
                if let Some(traces) = traces {
                    traces.close();
                }
                tasks.shut_down().await;
                ended
            }
        });
        Ok(Self {
            stop,
            task,
            tasks: running,
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

    /// The long-lived tasks, by name. The driver ends with the first of them.
    pub fn tasks(&self) -> &[(&'static str, AbortHandle)] {
        &self.tasks
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

/// Passes the triggers' commands to the manager until the SLM trigger has ended after `stop`, or any task before it.
async fn supervise(
    manager: &mut DrainManager,
    mut inbox: mpsc::Receiver<DrainCommand>,
    tasks: &mut Tasks<DriverError>,
    stop: &CancellationToken,
    health: &Health,
) -> Result<(), DriverError> {
    let pulse = health.pulse("manager");
    let mut beat = tokio::time::interval(Health::BEAT);
    let mut paused = false;
    let supervised = tasks.supervise(SLM_TRIGGER, || stop.is_cancelled());
    tokio::pin!(supervised);
    loop {
        pulse.beat();
        tokio::select! {
            biased;
            () = stop.cancelled(), if !paused => {
                paused = true;
                manager.pause();
            }
            ended = &mut supervised => return ended,
            Some(command) = inbox.recv() => manager.execute(command),
            ended = manager.ended() => {
                let outcome = ended?;
                manager.close(outcome);
            }
            _ = beat.tick() => {}
        }
    }
}

/// A panic of the supervisor itself is a bug.
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
