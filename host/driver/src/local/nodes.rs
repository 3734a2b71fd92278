//! The nodes of a command.

use crate::DriverError;
use scupper_cluster::{Cluster, ConnectOptions, Connection, ReadError};
use scupper_common::text::all_nearest;
use scupper_report::{LeasedDrain, LeftToUndo};

/// Which nodes a command is for.
#[derive(Clone, Debug)]
pub enum NodeSelection {
    /// Those with these names. Each must be there.
    Named(Vec<String>),
    /// Those with these labels. There may be none.
    Selected(String),
}

/// The names of all nodes.
pub async fn names(connection: Connection) -> Result<Vec<String>, DriverError> {
    let connect = ConnectOptions {
        connection,
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&connect).await.map_err(DriverError::Connect)?;
    let all = String::new();
    let names = cluster.nodes_with(&all).await;
    names.map_err(|source| DriverError::Selector {
        selector: all,
        source,
    })
}

/// Their names, each once. Fails before anything begins if a node does not exist or its pods may not be read.
pub async fn resolve(cluster: &Cluster, nodes: &NodeSelection) -> Result<Vec<String>, DriverError> {
    let names = match nodes {
        NodeSelection::Named(names) => names.clone(),
        NodeSelection::Selected(selector) => {
            let selected = cluster.nodes_with(selector).await;
            selected.map_err(|source| DriverError::Selector {
                selector: selector.clone(),
                source,
            })?
        }
    };
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if known.contains(&name) {
            continue;
        }
        match cluster.preflight(&name).await {
            Ok(()) => known.push(name),
            Err(ReadError::NotFound { .. }) => return Err(no_such_node(cluster, name).await),
            Err(error) => return Err(DriverError::of_node(&name)(error)),
        }
    }
    Ok(known)
}

/// The error for a name that no node has.
async fn no_such_node(cluster: &Cluster, node: String) -> DriverError {
    let names = cluster.nodes_with("").await.unwrap_or_default();
    let nearest = all_nearest(&node, names.iter().map(String::as_str));
    // More names do not help.
    let nearest = match nearest.len() {
        ..=3 => nearest.into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    DriverError::NoSuchNode { node, nearest }
}

/// The same. Of a node that does not exist it also says what policies must still undo for it, as its Lease names it.
pub async fn resolve_or_recall(
    cluster: &Cluster,
    nodes: &NodeSelection,
    lease_namespace: &str,
) -> Result<Vec<String>, DriverError> {
    let (node, nearest) = match resolve(cluster, nodes).await {
        Err(DriverError::NoSuchNode { node, nearest }) => (node, nearest),
        resolved => return resolved,
    };
    let lease = cluster.lease(lease_namespace, &node).await.ok().flatten();
    let drain = lease.and_then(|lease| LeasedDrain::from_text(&lease.drain));
    let left = drain.map(|drain| LeftToUndo::without_mark(&node, &drain));
    match left.filter(|left| !left.policies.is_empty()) {
        Some(left) => Err(DriverError::NodeGone {
            node,
            left: left.note(),
        }),
        None => Err(DriverError::NoSuchNode { node, nearest }),
    }
}
