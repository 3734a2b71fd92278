//! A drain for a LifecycleEvent that a command has taken over from a driver, and that is rolled back, or whose node is given
//! back: the event goes, as with `scupper cancel`. If it stayed, the driver would drain the node again as soon as it is back,
//! because nothing on the node says any more that this was done.

use scupper_cluster::Cluster;
use scupper_common::error::chain;
use scupper_engine::{Checkpoint, Intent, Trigger};

use super::run::is_of_command;

/// Deletes the LifecycleEvent of this drain, if it is for one, and says what came of that. Whichever commands have taken it over
/// since, the mark keeps the id and the name of the event.
pub(super) async fn withdraw(cluster: &Cluster, node: &str, mark: &Checkpoint) {
    let event = &mark.name;
    match delete(cluster, mark).await {
        Ok(true) => tracing::warn!(
            "node {node}: LifecycleEvent {event} is withdrawn, so that its driver does not drain the node again"
        ),
        Ok(false) => {}
        Err(error) if Trigger::of(&mark.trigger) == Trigger::Command => tracing::warn!(
            "node {node}: whether the drain was for a LifecycleEvent is not known: {error}. If it was, its driver drains the \
             node again; to prevent that: scupper cancel {node}"
        ),
        Err(error) => tracing::warn!(
            "node {node}: LifecycleEvent {event} could not be withdrawn: {error}. Its driver drains the node again once it \
             is back; to withdraw it: scupper cancel {node}"
        ),
    }
}

/// The same, for a drain that had ended when its node was given back. Only a LifecycleEvent that is still claimed is left of it
/// then, because no driver has run since.
pub(super) async fn withdraw_ended(cluster: &Cluster, node: &str, mark: &Checkpoint) {
    if mark.intent == Intent::Drain && !mark.is_under_way() && !is_of_command(&mark.id) {
        withdraw(cluster, node, mark).await;
    }
}

async fn delete(cluster: &Cluster, mark: &Checkpoint) -> Result<bool, String> {
    let served = cluster.clone().in_served_group().await;
    let Some(cluster) = served.map_err(|error| chain(&error))? else {
        return Ok(false);
    };
    let found = cluster
        .stored_event(&mark.name)
        .await
        .map_err(|error| chain(&error))?;
    let event = found.map(|found| found.event);
    let Some(event) = event.filter(|event| event.uid == mark.id && !event.claim.is_terminal()) else {
        return Ok(false);
    };
    let deleted = cluster.delete_event(&event).await;
    deleted.map(|()| true).map_err(|error| chain(&error))
}
