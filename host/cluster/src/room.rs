//! What the nodes have room for: all nodes, pods and Services, read once, as where replacements can run depends on all of them.
//!
//! Objects are reduced as they are decoded, page by page: a cluster of 1,000 nodes has 110,000 pods.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::VolumeClaim;
use scupper_placement::wire::{PodToPlace, WireNode, WirePod, WireService, WireVolume};
use scupper_placement::{NodeTerm, Scene, Services};

use super::listing::{self, Source};
use super::{Cluster, ReadError};

/// The nodes, the pods that stay, and those that may leave.
#[derive(Clone, Debug)]
pub struct ClusterRoom {
    /// All nodes, with the pods of those that are not drained.
    pub scene: Scene,
    /// The pods of the nodes that are drained.
    pub pods: Vec<PodToPlace>,
    /// Why it is not known which nodes reach the volumes of these.
    pub volumes_unread: Option<ReadError>,
    /// The Services with the number of their ready pods; `Err`: why they are not known.
    pub services: Result<Services, ReadError>,
}

impl Cluster {
    /// Reads all nodes and pods, for drains of these nodes. Pods that have ended, or are terminating, are left out.
    pub async fn room(&self, drained: &BTreeSet<String>) -> Result<ClusterRoom, ReadError> {
        let nodes = Source::all("/api/v1/nodes".to_owned());
        let nodes = self.read_reduced(&nodes, "list nodes", WireNode::into_node);
        let (mut scene, mut pods) = (Scene::new(nodes.await?), Vec::new());
        let services = Source::all("/api/v1/services".to_owned());
        let services = self.read_reduced(&services, "list services", WireService::into_service);
        let services = services.await;
        let mut services = services.map(|all| Services::new(all.into_iter().flatten()));
        let each = |pod: WirePod| {
            if !pod.is_there() {
                return;
            }
            services.iter_mut().for_each(|services| pod.count_in(services));
            if drained.contains(pod.node()) {
                pods.push(pod.into_pod_to_place());
            } else {
                let (node, resident) = pod.into_resident();
                scene.add(&node, resident);
            }
        };
        let all = Source::all("/api/v1/pods".to_owned());
        let listed = listing::for_each(self.client(), &all, self.options(), each).await;
        listed.map_err(|fault| fault.read("list pods"))?;
        let volumes_unread = self.add_volumes(&mut pods).await.err();
        Ok(ClusterRoom {
            scene,
            pods,
            volumes_unread,
            services,
        })
    }

    async fn add_volumes(&self, pods: &mut [PodToPlace]) -> Result<(), ReadError> {
        let claims = pods.iter().flat_map(claims_of).collect();
        let bound = self.bound_claims(&claims).await?;
        if bound.is_empty() {
            return Ok(());
        }
        let reach = self.reach_of_volumes(&bound.values().cloned().collect()).await?;
        for pod in pods {
            let volumes = claims_of(pod).filter_map(|claim| bound.get(&claim));
            let terms = volumes.filter_map(|volume| reach.get(volume).cloned());
            pod.newcomer.volumes = terms.collect();
        }
        Ok(())
    }

    /// Which nodes reach these volumes, of those that not all nodes reach.
    async fn reach_of_volumes(
        &self,
        names: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Vec<NodeTerm>>, ReadError> {
        let volumes = Source::all("/api/v1/persistentvolumes".to_owned());
        let reach = |volume: WireVolume| volume.reach(names);
        let all = self.read_reduced(&volumes, "list persistentvolumes", reach);
        Ok(all.await?.into_iter().flatten().collect())
    }
}

fn claims_of(pod: &PodToPlace) -> impl Iterator<Item = VolumeClaim> {
    pod.claims.iter().map(|name| VolumeClaim {
        namespace: pod.newcomer.resident.namespace.clone(),
        name: name.clone(),
    })
}
