//! Whether the driver will be able to serve DrainRequests, as its configuration says.

use std::path::Path;

use super::Finding;
use crate::use_cases::CommandError;
use scupper_cluster::{Cluster, DrainRequestKind, Right, needed_for_drain_requests};
use scupper_driver::{DriverError, drain_request_kind};

const SUBJECT: &str = "DrainRequests";

/// What was found, and what the driver needs.
#[derive(Debug, Default)]
pub(super) struct DrainRequestsFound {
    pub(super) finding: Option<Finding>,
    pub(super) rights: Vec<Right>,
}

/// Nothing, if the file does not ask for them or cannot be read, which is a finding of its own.
pub(super) async fn of_file(file: &Path, cluster: &Cluster) -> Result<DrainRequestsFound, CommandError> {
    let read = scupper_config::read(file).ok();
    let Some(wanted) = read.and_then(|read| read.drain_requests) else {
        return Ok(DrainRequestsFound::default());
    };
    let kind = drain_request_kind(&wanted);
    let is_served = cluster.serves_drain_requests(&kind).await;
    let is_served = is_served.map_err(DriverError::Discovery)?;
    let of_namespace = |namespace: &String| needed_for_drain_requests(&kind, namespace);
    Ok(DrainRequestsFound {
        finding: Some(found(&kind, &wanted.namespaces, is_served)),
        rights: wanted.namespaces.iter().flat_map(of_namespace).collect(),
    })
}

pub(super) fn found(kind: &DrainRequestKind, namespaces: &[String], is_served: bool) -> Finding {
    let (resource, namespaces) = (kind.resource(), namespaces.join(", "));
    if is_served {
        let text = format!("the driver serves {resource} of the namespaces {namespaces}");
        return Finding::fine(SUBJECT, text);
    }
    Finding::wrong(
        SUBJECT,
        format!("the API server serves no {resource} in version {}", kind.version),
        "kubectl apply -f deploy/crds/drainrequests.yaml, or correct drain-requests in the configuration"
            .to_owned(),
    )
}
