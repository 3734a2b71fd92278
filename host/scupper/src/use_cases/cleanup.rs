//! Removes what a driver leaves behind when it is uninstalled.

use futures::StreamExt;
use scupper_engine::{Answer, Task, Uid};

use crate::use_cases::CommandError;
use scupper_cluster::{Change, Cluster, ConnectOptions, Connection, TransitionNodes, WriteError};
use scupper_driver::{DriverError, set_conditions};
use scupper_report::conditions_of_abandoned;

/// What to clean up.
#[derive(Clone, Debug)]
pub(crate) struct CleanupOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The node.
    pub node: String,
    /// The driver's name.
    pub driver: String,
}

/// Removes the driver's transitions and annotation of this node, and returns what it removed. Transitions for all nodes
/// also belong to the other nodes' drivers, and a cordon is the operator's: both stay.
pub(crate) async fn cleanup(options: CleanupOptions) -> Result<Vec<String>, CommandError> {
    let connect = ConnectOptions {
        connection: options.connection,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let unseen = DriverError::of_node(&options.node);
    let node = cluster.node(&options.node).await.map_err(unseen)?;
    let mut removed = Vec::new();
    if let Some(node) = node.filter(|node| node.checkpoint.is_some()) {
        remove_annotation(&cluster, &options.node, node.uid.clone()).await?;
        removed.push(format!("the annotation of node {}", options.node));
        // Without the driver, no process could continue the drain or correct the condition.
        let gone = "scupper cleanup has taken away what was known of the drain";
        if let Some(changes) = conditions_of_abandoned(&node, gone) {
            let set = set_conditions(&cluster, &options.node, &changes).await;
            set.map_err(CommandError::Cleanup)?;
            removed.push(format!("DrainInProgress of node {}", options.node));
        }
    }
    if let Some(cluster) = cluster.in_served_group().await.map_err(DriverError::Discovery)? {
        let mut transitions = cluster.lifecycle_transitions(&options.driver);
        let listed = transitions.next().await;
        let listed = if let Some(Change::Listed(listed)) = listed {
            listed
        } else {
            Vec::new()
        };
        for transition in listed
            .into_iter()
            .filter(|known| known.scope == TransitionNodes::Node(options.node.clone()))
        {
            cluster
                .delete_transition(&transition.name)
                .await
                .map_err(CommandError::Cleanup)?;
            removed.push(format!("lifecycletransition {}", transition.name));
        }
    }
    Ok(removed)
}

async fn remove_annotation(cluster: &Cluster, node: &str, uid: Uid) -> Result<(), CommandError> {
    let what = format!("remove our annotation of node {node}");
    match cluster.perform(node, &Task::Forget { node: uid }).await {
        Answer::Written { .. } | Answer::NodeGone => Ok(()),
        Answer::Forbidden { message } | Answer::Rejected { message } => {
            Err(CommandError::Cleanup(WriteError::Rejected {
                what,
                code: 403,
                message,
            }))
        }
        other => Err(CommandError::Cleanup(WriteError::Unavailable {
            what,
            message: format!("{other:?}"),
        })),
    }
}
