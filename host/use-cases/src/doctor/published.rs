//! Whether some driver of that name has been at work and offers drains with the time limit of its configuration, and whether a
//! driver's pod is on the node.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use scupper_api::{Change, LifecycleTransition};
use scupper_engine::{HumanDuration, Pod};

use super::Finding;
use crate::driver_pods;
use scupper_cluster::{Cluster, ReadError};
use scupper_config::DrainSettings;

const SUBJECT: &str = "transitions";

/// The list of transitions is an answer to one request.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

/// `file`: the driver's configuration.
pub(super) async fn of_driver(cluster: &Cluster, driver: &str, file: Option<&Path>) -> Vec<Finding> {
    // What is wrong with the file is a finding of its own.
    let read = file.and_then(|file| scupper_config::read(file).ok());
    let limit = read.map(|read| DrainSettings::default().with(&read.drain).time_limit);
    if let Err(error) = cluster.transitions_of(driver).await
        && error.is_forbidden()
    {
        return vec![Finding::note(
            SUBJECT,
            format!("whether driver {driver} has published LifecycleTransitions is not known: {error}"),
            "use an account with the roles of deploy/people.yaml".to_owned(),
        )];
    }
    let mut transitions = cluster.lifecycle_transitions(driver);
    let listed = tokio::time::timeout(LISTED_WITHIN, transitions.next()).await;
    match listed {
        Ok(Some(Change::Listed(listed))) => found(driver, &listed, limit),
        _ => found(driver, &[], limit),
    }
}

/// `limit`: `drain.sla` of the driver's configuration, if that was read.
pub(super) fn found(
    driver: &str,
    published: &[LifecycleTransition],
    limit: Option<Option<Duration>>,
) -> Vec<Finding> {
    if published.is_empty() {
        return vec![Finding::note(
            SUBJECT,
            format!("no LifecycleTransition of driver {driver} is published"),
            "one that has just started publishes them within seconds; is it installed? kubectl -n scupper get daemonset \
             scupper; if it runs, its log says why it cannot publish them"
                .to_owned(),
        )];
    }
    let names: Vec<_> = published.iter().map(|it| it.name.as_str()).collect();
    let text = format!("driver {driver} has published {}", names.join(", "));
    let fine = Finding::fine(SUBJECT, text);
    let unlike = limit.and_then(|limit| with_another_limit(driver, published, limit));
    std::iter::once(fine).chain(unlike).collect()
}

/// Whether a driver's pod runs on the node. A driver may also run without a pod.
pub(super) fn driver_pod(node: &str, found: Result<Option<Pod>, ReadError>) -> Finding {
    const SUBJECT: &str = "driver's pod";
    match found {
        Ok(Some(Pod { id, ready: true, .. })) => {
            Finding::fine(SUBJECT, format!("{id} runs on node {node}, and is ready"))
        }
        Ok(Some(Pod { id, .. })) => Finding::wrong(
            SUBJECT,
            format!("{id} on node {node} is not ready"),
            format!("kubectl -n {} describe pod {}", id.namespace, id.name),
        ),
        Ok(None) => Finding::note(
            SUBJECT,
            format!(
                "there is none on node {node}: nothing drains it for an event, unless a driver runs there without a pod"
            ),
            format!("kubectl get daemonset -A -l {}", driver_pods::SELECTOR),
        ),
        Err(error) => Finding::note(SUBJECT, format!("not known: {error}"), String::new()),
    }
}

/// A drain whose event is claimed ends when its transition says so. `limit`: `drain.sla`.
fn with_another_limit(
    driver: &str,
    published: &[LifecycleTransition],
    limit: Option<Duration>,
) -> Option<Finding> {
    let of_node = format!("{driver}.");
    let mut drains = published
        .iter()
        .filter(|it| it.name == driver || it.name.starts_with(&of_node));
    let unlike = drains.find(|it| it.sla != limit)?;
    let shown = |limit: Option<Duration>| match limit {
        Some(limit) => format!("the time limit {}", HumanDuration(limit)),
        None => "no time limit".to_owned(),
    };
    Some(Finding::wrong(
        SUBJECT,
        format!(
            "{} is published with {}, and the configuration has {} (drain.sla): drains for LifecycleEvents have what is \
             published",
            unlike.name,
            shown(unlike.sla),
            shown(limit)
        ),
        "set `limit` of the ValidatingAdmissionPolicy scupper-lifecycle-transitions (own-node.yaml) to drain.sla, then \
         restart the drivers: kubectl -n scupper rollout restart daemonset scupper"
            .to_owned(),
    ))
}
