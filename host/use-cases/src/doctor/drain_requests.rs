//! Whether the driver will be able to serve DrainRequests, as its configuration says.

use std::collections::BTreeSet;
use std::path::Path;

use super::Finding;
use crate::CommandError;
use scupper_cluster::{
    Cluster, DrainRequestObject, DrainRequestResource, ReadError, Right, needed_for_drain_requests,
};
use scupper_config::DrainRequestsFile;
use scupper_driver::{DriverError, drain_request_kind};
use scupper_triggers::cordon::{LABEL, UNCORDON_LABEL};

const SUBJECT: &str = "DrainRequests";

/// How many requests one finding names.
const SHOWN: usize = 10;

/// What was found, and what the driver needs.
#[derive(Debug, Default)]
pub(super) struct DrainRequestsFound {
    pub(super) findings: Vec<Finding>,
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
    let mut findings = vec![found(&kind, &wanted.namespaces, is_served)];
    if is_served {
        findings.extend(check_selection(cluster, &kind, &wanted.namespaces).await);
        findings.extend(read_unserved(cluster, &kind, &wanted).await);
    }
    let labelled = cluster.nodes_with(&format!("{LABEL}=true")).await;
    findings.extend(labelled.ok().and_then(|nodes| drained_whole(&nodes)));
    Ok(DrainRequestsFound {
        findings,
        rights: wanted.namespaces.iter().flat_map(of_namespace).collect(),
    })
}

pub(super) fn found(kind: &DrainRequestResource, namespaces: &[String], is_served: bool) -> Finding {
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

/// Whether drivers can select the requests of their node. The check of the rights reports what may not be read.
async fn check_selection(
    cluster: &Cluster,
    kind: &DrainRequestResource,
    namespaces: &[String],
) -> Option<Finding> {
    let is_selectable = cluster.selects_drain_requests(kind, namespaces.first()?).await;
    (!is_selectable.ok()?).then(|| unselectable(kind))
}

pub(super) fn unselectable(kind: &DrainRequestResource) -> Finding {
    Finding::note(
        SUBJECT,
        format!(
            "the CustomResourceDefinition {} declares no selectable field spec.nodeName: the driver of a node sees only \
             requests with the label nvsentinel.nvidia.com/node-name, which node-drainer sets",
            kind.resource()
        ),
        "add selectableFields with jsonPath .spec.nodeName to each version, as in deploy/crds/drainrequests.yaml"
            .to_owned(),
    )
}

/// The nodes that are drained whole before a request says which of their pods must leave.
pub(super) fn drained_whole(nodes: &[String]) -> Option<Finding> {
    let mut named: Vec<&str> = nodes.iter().take(SHOWN).map(String::as_str).collect();
    let more = nodes.len().saturating_sub(SHOWN);
    let rest = format!("{more} more");
    if more > 0 {
        named.push(&rest);
    }
    let text = format!(
        "a cordon, such as fault-quarantine's, drains all pods of these nodes before a request names any, because of \
         their label {LABEL}: {}",
        named.join(", ")
    );
    let remedy = format!("kubectl label node -l {LABEL}=true {LABEL}- {UNCORDON_LABEL}=true");
    (!nodes.is_empty()).then(|| Finding::note(SUBJECT, text, remedy))
}

/// The requests that no driver serves. The check of the rights reports what may not be read.
async fn read_unserved(
    cluster: &Cluster,
    kind: &DrainRequestResource,
    wanted: &DrainRequestsFile,
) -> Option<Finding> {
    let read = async {
        let nodes = cluster.nodes_with("").await?;
        let mut requests = Vec::new();
        for namespace in &wanted.namespaces {
            requests.extend(cluster.list_drain_requests(kind, namespace).await?);
        }
        Ok::<_, ReadError>((nodes.into_iter().collect(), requests))
    };
    let (nodes, requests) = read.await.ok()?;
    unserved_requests(kind, wanted, &nodes, &requests)
}

/// Unanswered requests whose node does not exist: each driver serves only those of its own node.
pub(super) fn unserved_requests(
    kind: &DrainRequestResource,
    wanted: &DrainRequestsFile,
    nodes: &BTreeSet<String>,
    requests: &[DrainRequestObject],
) -> Option<Finding> {
    let ends = [&wanted.complete, &wanted.failed];
    let has_ended = |request: &DrainRequestObject| {
        let mut conditions = request.conditions.iter();
        conditions.any(|it| it.status == "True" && ends.contains(&&it.kind))
    };
    let named = |request: &DrainRequestObject| {
        let (namespace, name) = (&request.reference.namespace, &request.reference.name);
        match request.node.as_str() {
            "" => format!("{namespace}/{name} names no node"),
            node => format!("{namespace}/{name} names {node}, which does not exist"),
        }
    };
    let open = requests.iter().filter(|request| !has_ended(request));
    let mut unserved: Vec<String> = open
        .filter(|request| !nodes.contains(&request.node))
        .map(named)
        .collect();
    let more = unserved.len().saturating_sub(SHOWN);
    unserved.truncate(SHOWN);
    if more > 0 {
        unserved.push(format!("{more} more"));
    }
    let remedy = format!("correct spec.nodeName, or kubectl delete {}", kind.resource());
    (!unserved.is_empty()).then(|| {
        Finding::note(
            SUBJECT,
            format!("no driver serves these: {}", unserved.join("; ")),
            remedy,
        )
    })
}
