//! The DrainRequest trigger's access to the API server, by means of the cluster edge.

use std::sync::Arc;

use futures::stream::{self, BoxStream, select_all};
use futures::{FutureExt as _, StreamExt as _};
use scupper_api::Change;
use tokio::sync::{mpsc, watch};

use crate::KubeletPluginOptions;
use crate::manager::resume_point::{self, LeftDrain};
use scupper_cluster::{Cluster, DrainRequestObject, DrainRequestResource, WriteError};
use scupper_common::clock::Clock;
use scupper_config::DrainRequestsFile;
use scupper_engine::Condition;
use scupper_metrics::Metrics;
use scupper_triggers::drain_request::{
    self, ConditionNames, DrainRequestDeps, DrainRequestOptions, FindResumePoint, ObservedRequest,
    RequestChange, ServedRequests, SetConditions, UnwrittenConditions,
};
use scupper_triggers::{DrainCommand, DrainReport};

/// What the trigger reads and where its commands go.
pub(crate) struct DrainRequestTriggerDeps {
    /// What a former process left on the node.
    pub(crate) left: LeftDrain,
    pub(crate) served: watch::Sender<Option<ServedRequests>>,
    pub(crate) commands: mpsc::Sender<DrainCommand>,
    pub(crate) reports: mpsc::UnboundedReceiver<DrainReport>,
    pub(crate) sole_instance: watch::Receiver<bool>,
    pub(crate) metrics: Metrics,
}

/// The trigger. It ends with the driver. Without a configuration it sees no requests, and cancels the drain that an
/// earlier driver with one has left.
pub(crate) fn run(
    cluster: &Cluster,
    options: &KubeletPluginOptions,
    config: Option<DrainRequestsFile>,
    deps: DrainRequestTriggerDeps,
) -> impl Future<Output = ()> + Send + use<> {
    let is_served = config.is_some();
    if is_served {
        deps.metrics.serves_drain_requests();
    }
    let config = config.unwrap_or_default();
    let namespaces = if is_served {
        config.namespaces.clone()
    } else {
        vec![String::new()]
    };
    let requests = if is_served {
        requests(cluster, &config, options)
    } else {
        let none = namespaces
            .iter()
            .map(|namespace| RequestChange::Listed(namespace.clone(), Vec::new()));
        stream::iter(none.collect::<Vec<_>>())
            .chain(stream::pending())
            .boxed()
    };
    let deps = DrainRequestDeps {
        requests,
        find_resume_point: find_resume_point(deps.left, options.clock),
        set_conditions: set_conditions(cluster.clone(), &config, deps.metrics),
        served: deps.served,
        commands: deps.commands,
        reports: deps.reports,
        sole_instance: deps.sole_instance,
    };
    let options = DrainRequestOptions {
        namespaces,
        conditions: condition_names(&config, &options.node_name),
        timeout: config.timeout,
        clock: options.clock,
    };
    drain_request::run(options, deps)
}

fn requests(
    cluster: &Cluster,
    config: &DrainRequestsFile,
    options: &KubeletPluginOptions,
) -> BoxStream<'static, RequestChange> {
    let (partial, clock) = (config.partial, options.clock);
    let kind = kind(config);
    let each = config.namespaces.iter().map(|namespace| {
        let changes = cluster.drain_requests(&kind, namespace, &options.node_name);
        let namespace = namespace.clone();
        let observed = move |object| observed(object, partial, clock);
        let changes = changes.map(move |change| match change {
            Change::Listed(all) => {
                RequestChange::Listed(namespace.clone(), all.into_iter().map(observed).collect())
            }
            Change::Applied(object) => RequestChange::Applied(observed(object)),
            Change::Deleted(object) => RequestChange::Deleted(object.reference.uid),
        });
        changes.boxed()
    });
    select_all(each).boxed()
}

/// Where the configuration says that they are served.
pub fn kind(config: &DrainRequestsFile) -> DrainRequestResource {
    DrainRequestResource {
        group: config.group.clone(),
        version: config.version.clone(),
        plural: config.plural.clone(),
    }
}

pub(super) fn condition_names(config: &DrainRequestsFile, node: &str) -> ConditionNames {
    ConditionNames {
        node: node.to_owned(),
        complete: config.complete.clone(),
        in_progress: config.in_progress.clone(),
        deferred: config.deferred.clone(),
        failed: config.failed.clone(),
    }
}

pub(super) fn observed(object: DrainRequestObject, partial: bool, clock: Clock) -> ObservedRequest {
    let DrainRequestObject {
        reference,
        created,
        deleting,
        problem,
        pods,
        conditions,
        fields,
        node: _,
    } = object;
    let (only_pods, wrong_pods) = match pods {
        _ if !partial => (None, None),
        Ok(pods) => (Some(pods), None),
        Err(problem) => (None, Some(problem)),
    };
    let on_our_line = |condition: Condition| Condition {
        since: condition.since.map(|wall| clock.moment_of_wall(wall)),
        ..condition
    };
    ObservedRequest {
        reference,
        created,
        deleting,
        problem: problem.or(wrong_pods),
        only_pods,
        conditions: conditions.into_iter().map(on_our_line).collect(),
        fields,
    }
}

fn find_resume_point(left: LeftDrain, clock: Clock) -> FindResumePoint {
    Arc::new(move || {
        let left = left.clone();
        async move { resume_point::of_drain_request(&left.mark().await?, clock) }.boxed()
    })
}

fn set_conditions(cluster: Cluster, config: &DrainRequestsFile, metrics: Metrics) -> SetConditions {
    let kind = Arc::new(kind(config));
    let answers = Arc::new([config.complete.clone(), config.failed.clone()]);
    Arc::new(move |request, conditions| {
        let (cluster, kind) = (cluster.clone(), Arc::clone(&kind));
        let (metrics, answers) = (metrics.clone(), Arc::clone(&answers));
        async move {
            let set = cluster.set_drain_request_conditions(&kind, &request, &conditions);
            let is_new = match set.await {
                Ok(is_new) => is_new,
                // Deleted: there is nothing left to say.
                Err(WriteError::Rejected { code: 404, .. }) => return Ok(()),
                Err(error) if error.is_forbidden() => {
                    return Err(UnwrittenConditions::Refused(error.to_string()));
                }
                Err(error) => return Err(UnwrittenConditions::Failed(error.to_string())),
            };
            let answers = conditions
                .iter()
                .filter(|it| is_new && answers.contains(&it.kind));
            for answer in answers {
                metrics.drain_request_answered(&answer.reason);
            }
            Ok(())
        }
        .boxed()
    })
}
