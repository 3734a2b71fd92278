//! Removes what a driver leaves behind when it is uninstalled. What drains have changed outside of the node's annotation
//! is taken back as well, or named: nothing else remembers it.

use futures::StreamExt;
use scupper_api::{Change, TransitionNodes};
use scupper_engine::{Answer, Checkpoint, Node, Raised, Task, ToUndo, Uid};

use crate::CommandError;
use scupper_cluster::{Cluster, ConnectOptions, Connection, WriteError};
use scupper_driver::{ACTIVE_POLICIES, DriverError, OUT_OF_SERVICE_TAINT, remove_taint};
use scupper_lease::HOLDER_ANNOTATION;
use scupper_report::{LeasedDrain, conditions_of_abandoned};

/// What to clean up.
#[derive(Clone, Debug)]
pub struct CleanupOptions {
    /// How to reach the API server.
    pub connection: Connection,
    /// The node.
    pub node: String,
    /// The driver's name.
    pub driver: String,
    /// Where the leases of nodes are.
    pub lease_namespace: String,
}

/// What was cleaned up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// What was removed or taken back.
    pub removed: Vec<String>,
    /// What stays, and how to undo it.
    pub left: Vec<String>,
}

/// Removes the driver's transitions and annotation of this node, and takes back what its drains have left. Transitions for
/// all nodes also belong to the other nodes' drivers, and a cordon is the operator's: both stay.
pub async fn cleanup(options: CleanupOptions) -> Result<CleanedUp, CommandError> {
    let connect = ConnectOptions {
        connection: options.connection.clone(),
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let unseen = DriverError::of_node(&options.node);
    let node = cluster.node(&options.node).await.map_err(unseen)?;
    let mut done = CleanedUp::default();
    if let Some(node) = &node {
        undo(&cluster, node, &mut done).await?;
    }
    forget_lease(&cluster, &options, node.as_ref(), &mut done).await;
    for key in [ACTIVE_POLICIES, HOLDER_ANNOTATION] {
        if node
            .as_ref()
            .is_some_and(|node| node.annotations.contains_key(key))
        {
            let removed = cluster.remove_node_annotation(&options.node, key).await;
            removed.map_err(CommandError::Cleanup)?;
            done.removed
                .push(format!("the annotation {key} of node {}", options.node));
        }
    }
    if let Some(node) = node.filter(|node| node.checkpoint.is_some()) {
        remove_annotation(&cluster, &options.node, node.uid.clone()).await?;
        done.removed
            .push(format!("the annotation of node {}", options.node));
        // Without the driver, no process could continue the drain or correct the condition.
        let gone = "scupper cleanup has taken away what was known of the drain";
        if let Some(changes) = conditions_of_abandoned(&node, gone) {
            let set = cluster.set_node_conditions(&options.node, &changes).await;
            set.map_err(CommandError::Cleanup)?;
            done.removed
                .push(format!("DrainInProgress of node {}", options.node));
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
        let (own, others): (Vec<_>, Vec<_>) = listed
            .into_iter()
            .partition(|known| known.nodes == TransitionNodes::Node(options.node.clone()));
        let shared = others
            .iter()
            .filter(|known| known.nodes == TransitionNodes::AllNodes);
        let shared: Vec<_> = shared.map(|known| known.name.as_str()).collect();
        if !shared.is_empty() {
            let names = shared.join(" ");
            done.left.push(format!(
                "the transitions for all nodes; once no node has a driver: kubectl delete lifecycletransitions {names}"
            ));
        }
        for transition in own {
            cluster
                .delete_transition(&transition.name)
                .await
                .map_err(CommandError::Cleanup)?;
            done.removed
                .push(format!("lifecycletransition {}", transition.name));
        }
    }
    Ok(done)
}

/// Removes what the node's Lease says of what policies must undo, and names that if the node's mark does not. Whoever may not
/// read Leases has none.
async fn forget_lease(
    cluster: &Cluster,
    options: &CleanupOptions,
    node: Option<&Node>,
    done: &mut CleanedUp,
) {
    let CleanupOptions {
        node: name,
        lease_namespace,
        ..
    } = options;
    let lease = cluster.lease(lease_namespace, name).await.ok().flatten();
    let Some(lease) = lease.filter(|lease| lease.holder.is_empty()) else {
        return;
    };
    if let Some(drain) = LeasedDrain::from_text(&lease.drain)
        && node.is_none_or(|node| node.checkpoint.is_none())
    {
        done.left.extend(left_to_undo(name, &drain.left_to_undo()));
    }
    match cluster.drop_lease(&lease).await {
        Ok(()) => done.removed.push(format!("lease {lease_namespace}/{name}")),
        Err(error) => done.left.push(format!("lease {lease_namespace}/{name}: {error}")),
    }
}

/// What only policies can undo.
fn left_to_undo(node: &str, to_undo: &ToUndo) -> Option<String> {
    let policies: Vec<_> = to_undo.keys().map(String::as_str).collect();
    (!policies.is_empty()).then(|| {
        format!(
            "what the policies {} changed for node {node}: scupper uncordon {node} --local --force --config scupper.yaml \
             runs their hooks",
            policies.join(", ")
        )
    })
}

/// Takes back what drains have changed besides the node's annotation, before that is removed.
async fn undo(cluster: &Cluster, node: &Node, done: &mut CleanedUp) -> Result<(), CommandError> {
    if node.is_out_of_service() {
        untaint(cluster, node, done).await?;
    }
    let Some(mark) = &node.checkpoint else {
        return Ok(());
    };
    for raised in &mark.raised {
        take_back(cluster, &node.name, raised, done).await;
    }
    done.left.extend(left_by(node, mark));
    Ok(())
}

/// The taint of a machine that is still off stays: without it, no controller deletes its pods and detaches its volumes.
async fn untaint(cluster: &Cluster, node: &Node, done: &mut CleanedUp) -> Result<(), CommandError> {
    let name = &node.name;
    if Node::may_be_off(&node.conditions) {
        done.left.push(format!(
            "the taint {OUT_OF_SERVICE_TAINT} of node {name}, whose machine is off; once it is back: \
             kubectl taint nodes {name} {OUT_OF_SERVICE_TAINT}-"
        ));
    } else if remove_taint(cluster, name).await.map_err(CommandError::Cleanup)? {
        done.removed
            .push(format!("the taint {OUT_OF_SERVICE_TAINT} of node {name}"));
    }
    Ok(())
}

async fn take_back(cluster: &Cluster, node: &str, raised: &Raised, done: &mut CleanedUp) {
    let Raised {
        deployment, drain, ..
    } = raised.clone();
    let (namespace, name) = (deployment.namespace.clone(), deployment.name.clone());
    let task = Task::TakeBack { deployment, drain };
    let why = match cluster.perform(node, &task).await {
        Answer::Written { .. } | Answer::NodeGone => {
            done.removed.push(format!(
                "the raise of Deployment {namespace}/{name} by one replica"
            ));
            return;
        }
        Answer::Unavailable { message } | Answer::Forbidden { message } | Answer::Rejected { message } => {
            message
        }
        other => format!("{other:?}"),
    };
    done.left.push(format!(
        "Deployment {namespace}/{name} may have one replica more than its owner set: {why}; look at it with \
         kubectl -n {namespace} get deployment {name}"
    ));
}

/// What only policies and people can undo.
fn left_by(node: &Node, mark: &Checkpoint) -> Vec<String> {
    let name = &node.name;
    let mut left: Vec<_> = left_to_undo(name, &mark.left_to_undo()).into_iter().collect();
    if mark.own_cordon && node.unschedulable {
        left.push(format!(
            "the cordon of node {name}, which Scupper made: kubectl uncordon {name}"
        ));
    }
    left
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
