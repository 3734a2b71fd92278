//! Reads the Lease of a node for `scupper status`, so that it can report an abandoned drain. It takes no Lease.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::Checkpoint;
use tokio::time::Instant;

use super::holder::HolderIdentity;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_report::{LeaseHolder, NodeStatus};

/// How long a result is reused, however often the node changes.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// Reads Leases.
pub struct LeaseReader {
    cluster: Cluster,
    namespace: String,
    clock: Clock,
    own: HolderIdentity,
    seen: BTreeMap<String, (Instant, LeaseHolder)>,
}

impl LeaseReader {
    /// Reads Leases of this namespace.
    pub fn new(cluster: Cluster, namespace: String, clock: Clock) -> Self {
        Self {
            cluster,
            namespace,
            clock,
            own: HolderIdentity::own(None),
            seen: BTreeMap::new(),
        }
    }

    /// The holder of the node's Lease; unknown if no drain runs there.
    pub async fn holder_of(&mut self, status: &NodeStatus) -> LeaseHolder {
        let mark = status.node.checkpoint.as_ref();
        if !mark.is_some_and(Checkpoint::is_under_way) {
            return LeaseHolder::Unknown;
        }
        let node = &status.node.name;
        if let Some((at, holder)) = self.seen.get(node)
            && at.elapsed() < GOOD_FOR
        {
            return holder.clone();
        }
        let holder = self.read(node).await;
        self.seen.insert(node.clone(), (Instant::now(), holder.clone()));
        holder
    }

    async fn read(&self, node: &str) -> LeaseHolder {
        match self.cluster.lease(&self.namespace, node).await {
            Ok(Some(lease)) if !lease.holder.is_empty() => {
                let holder = HolderIdentity::parse(&lease.holder);
                let is_dead = self.own.knows_dead(&holder);
                LeaseHolder::of(
                    holder.text(),
                    lease.renewed,
                    lease.length,
                    is_dead,
                    self.clock.wall(),
                )
            }
            Ok(_) => LeaseHolder::Free,
            Err(error) => {
                tracing::debug!(node, %error, "the node's Lease could not be read");
                LeaseHolder::Unknown
            }
        }
    }
}
