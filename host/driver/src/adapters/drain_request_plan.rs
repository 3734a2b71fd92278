//! The drain that a DrainRequest would get, for `scupper plan`: its requests are read once, by means of the cluster edge.

use thiserror::Error;

use super::drain_request_trigger::{condition_names, kind, observed};
use scupper_cluster::{Cluster, DrainRequestObject, ReadError};
use scupper_common::clock::Clock;
use scupper_config::DrainRequestsFile;
use scupper_triggers::drain_request::{NoDrain, PlannedDrain, planned_drain};

/// Why the drain of a request cannot be planned.
#[derive(Debug, Error)]
pub enum DrainRequestPlanError {
    /// The configuration does not name its namespace.
    #[error(
        "the driver serves no DrainRequests of namespace {namespace}: drain-requests.namespaces has {}",
        served.join(", ")
    )]
    NotServed {
        /// Its namespace.
        namespace: String,
        /// Those of the configuration.
        served: Vec<String>,
    },
    /// The API server did not list the requests.
    #[error("could not read the DrainRequests")]
    Read(#[source] ReadError),
    /// The driver would not drain for it.
    #[error("no drain for DrainRequest {request}")]
    NoDrain {
        /// Namespace and name.
        request: String,
        /// Why not.
        #[source]
        source: NoDrain,
    },
}

/// The drain that the request would get as things stand, and its node.
pub async fn plan_drain_request(
    cluster: &Cluster,
    config: &DrainRequestsFile,
    (namespace, name): (&str, &str),
    clock: Clock,
) -> Result<(String, PlannedDrain), DrainRequestPlanError> {
    if !config.namespaces.iter().any(|served| served == namespace) {
        return Err(DrainRequestPlanError::NotServed {
            namespace: namespace.to_owned(),
            served: config.namespaces.clone(),
        });
    }
    let mut requests = Vec::new();
    for namespace in &config.namespaces {
        let listed = cluster.list_drain_requests(&kind(config), namespace).await;
        requests.extend(listed.map_err(DrainRequestPlanError::Read)?);
    }
    let is_wanted = |request: &&DrainRequestObject| {
        request.reference.namespace == namespace && request.reference.name == name
    };
    let node = requests.iter().find(is_wanted).map(|found| found.node.clone());
    let node = node.unwrap_or_default();
    let of_node = requests.into_iter().filter(|request| request.node == node);
    let of_node = of_node.map(|request| observed(request, config.partial, clock));
    let planned = planned_drain(
        of_node.collect(),
        (namespace, name),
        &condition_names(config, &node),
    );
    let planned = planned.map_err(|source| DrainRequestPlanError::NoDrain {
        request: format!("{namespace}/{name}"),
        source,
    })?;
    Ok((node, planned))
}
